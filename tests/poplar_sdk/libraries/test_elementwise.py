"""Element-wise functions, casts and fills of popops against NumPy."""

import math

import numpy
import pytest

pytestmark = pytest.mark.without_tensorflow

erf = numpy.vectorize(math.erf, otypes=[float])
FLOATS, INTEGERS = ("float", "half"), ("int", "unsigned int", "short", "unsigned char", "long long")

UNARY = {
    "ABSOLUTE": numpy.abs,
    "ASIN": numpy.arcsin,
    "BITWISE_NOT": numpy.invert,
    "CBRT": numpy.cbrt,
    "CEIL": numpy.ceil,
    "COS": numpy.cos,
    "ERF": erf,
    "EXPONENT": numpy.exp,
    "EXPONENT_MINUS_ONE": numpy.expm1,
    "EXPONENT2": numpy.exp2,
    "FLOOR": numpy.floor,
    "GELU_ERF": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "INVERSE": lambda x: 1 / x,
    "IS_FINITE": numpy.isfinite,
    "IS_INF": numpy.isinf,
    "IS_NAN": numpy.isnan,
    "LOGARITHM": numpy.log,
    "LOGARITHM_ONE_PLUS": numpy.log1p,
    "LOGICAL_NOT": numpy.logical_not,
    "NEGATE": numpy.negative,
    "NEARBY_INT": numpy.rint,
    "RELU": lambda x: numpy.maximum(x, 0),
    "SIGNUM": numpy.sign,
    "SIN": numpy.sin,
    "TAN": numpy.tan,
    "TANH": numpy.tanh,
    "ROUND": lambda x: numpy.trunc(x + numpy.copysign(0.5, x)),
    "SQRT": numpy.sqrt,
    "SQUARE": numpy.square,
    "SIGMOID": lambda x: 1 / (1 + numpy.exp(-x)),
    "RSQRT": lambda x: 1 / numpy.sqrt(x),
    "TRUNC": numpy.trunc,
    "POPCOUNT": lambda x: bits(x).sum(-1),
    "COUNT_LEADING_ZEROS": lambda x: (numpy.cumsum(bits(x), -1) == 0).sum(-1),
}


def bits(values):
    """The bits of integers, the highest first."""
    wide = values.astype(numpy.int64) & (2 ** (8 * values.itemsize) - 1 if values.itemsize < 8 else -1)
    return numpy.stack([(wide >> k) & 1 for k in reversed(range(8 * values.itemsize))], -1)


def unsigned(values):
    return values.view(f"u{values.itemsize}")


BINARY = {
    "ADD": numpy.add,
    "ATAN2": numpy.arctan2,
    "BITWISE_AND": numpy.bitwise_and,
    "BITWISE_OR": numpy.bitwise_or,
    "BITWISE_XOR": numpy.bitwise_xor,
    "BITWISE_XNOR": lambda a, b: ~(a ^ b),
    "EQUAL": numpy.equal,
    "GREATER_THAN_EQUAL": numpy.greater_equal,
    "GREATER_THAN": numpy.greater,
    "INV_STD_DEV_TO_VARIANCE": lambda a, b: 1 / (a * a) - b,
    "LESS_THAN_EQUAL": numpy.less_equal,
    "LOGICAL_AND": numpy.logical_and,
    "LOGICAL_OR": numpy.logical_or,
    "LESS_THAN": numpy.less,
    "MAXIMUM": numpy.maximum,
    "MINIMUM": numpy.minimum,
    "MULTIPLY": numpy.multiply,
    "NOT_EQUAL": numpy.not_equal,
    "POWER": numpy.power,
    "REMAINDER": numpy.fmod,
    "SHIFT_LEFT": numpy.left_shift,
    "SHIFT_RIGHT": lambda a, b: (unsigned(a) >> unsigned(b)).view(a.dtype),
    "SHIFT_RIGHT_SIGN_EXTEND": lambda a, b: (a.view(f"i{a.itemsize}") >> b.view(f"i{a.itemsize}")).view(a.dtype),
    "SUBTRACT": numpy.subtract,
    "VARIANCE_TO_INV_STD_DEV": lambda a, b: 1 / numpy.sqrt(a + b),
}


def divided(a, b):
    return a / b if a.dtype.kind == "f" else numpy.trunc(a.astype(float) / b)


def expected(function, *arrays):
    """Computed in float64 for floating point, else in the type; in the type of the first array."""
    floating = arrays[0].dtype.kind == "f"
    result = function(*(array.astype(float) if floating else array for array in arrays))
    return result if result.dtype == bool else result.astype(arrays[0].dtype)


def check(received, wanted):
    assert received.dtype == wanted.dtype
    assert received.shape == wanted.shape
    if wanted.dtype.kind != "f":
        numpy.testing.assert_array_equal(received, wanted)
    else:
        step = numpy.finfo(wanted.dtype).eps
        numpy.testing.assert_allclose(received.astype(float), wanted.astype(float), rtol=4 * step, atol=8 * step)


@pytest.mark.parametrize("name", [*(f"unary {t}" for t in FLOATS + INTEGERS), *(f"unary positive {t}" for t in FLOATS)])
def test_one_operand(cases, name):
    case = cases[name]
    assert len(case.outputs) >= 5
    for operation, received in case.outputs.items():
        check(received, expected(UNARY[operation], case.inputs["a"]))


@pytest.mark.parametrize(
    "name",
    [
        *(f"binary {t}" for t in FLOATS + INTEGERS),
        *(f"binary positive {t}" for t in FLOATS),
        *(f"{kind} {t}" for kind in ("divisions", "shifts") for t in INTEGERS),
    ],
)
def test_two_operands(cases, name):
    case = cases[name]
    assert len(case.outputs) >= 2
    for operation, received in case.outputs.items():
        function = divided if operation == "DIVIDE" else BINARY[operation]
        check(received, expected(function, case.inputs["a"], case.inputs["b"]))


def test_logical(cases):
    case = cases["logical"]
    check(case.outputs["LOGICAL_NOT"], ~case.inputs["x"])
    for operation in ("LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL"):
        check(case.outputs[operation], BINARY[operation](case.inputs["a"], case.inputs["b"]))


def test_broadcast(cases):
    case = cases["broadcast"]
    a, b, s, h, g = (case.inputs[name] for name in "abshg")
    wanted = {"a+b": a + b, "a*s": a * s, "s-b": s - b, "2-a": 2 - a, "a/3": a / numpy.float32(3)}
    wanted["h*g"] = (h.astype(float) * g).astype(numpy.float16)
    for name, values in wanted.items():
        check(case.outputs[name], values)
    case = cases["long broadcast"]
    check(case.outputs["a+b"], case.inputs["a"] + case.inputs["b"])
    check(case.outputs["outer"], case.inputs["rows"] * case.inputs["columns"])


def test_in_place(cases):
    case = cases["in place"]
    a, b = case.inputs["a"], case.inputs["b"]
    wanted = a * b + 1
    wanted.T[::-1] -= b.T
    wanted[:25] += wanted[25:]
    wanted = wanted - wanted[7, 3]
    numpy.testing.assert_allclose(case.outputs["copy"], wanted, rtol=1e-5, atol=1e-5)


def test_expressions(cases):
    case = cases["expressions"]
    a, b, h, i = (case.inputs[name] for name in "abhi")
    tripled = (h.astype(float) * 3).astype(numpy.float16)  # each operation of half rounds
    wanted = {
        "tanh": numpy.tanh(a * a + 3),
        "mixed": (a + 1) * b - numpy.float32(0.5),
        "select": numpy.where((a > b) & (b < 0.5), a, -b),
        "clamp": numpy.clip(a, -1, numpy.float32(0.5)),
        "half": (tripled.astype(float) + 0.25).astype(numpy.float16),
        "cast": h.astype(numpy.float32) + a,
        "int": numpy.fmod(i * 3 + 7, 5),
        "constants": (h.astype(float) * 3).astype(numpy.float16),
        "again": a * a + a,
    }
    assert wanted.keys() == case.outputs.keys()
    for name, values in wanted.items():
        check(case.outputs[name], values)


def test_several_outputs_read_old_values(cases):
    case = cases["several"]
    a, b = case.inputs["a"], case.inputs["b"]
    check(case.outputs["x"], a + b)
    check(case.outputs["y"], a - b)


def test_casts(cases):
    case = cases["casts"]
    a, i = case.inputs["a"], case.inputs["i"]
    check(case.outputs["same"], a)
    with numpy.errstate(over="ignore"):
        check(case.outputs["a to half"], a.astype(numpy.float16))
        check(case.outputs["i to half"], i.astype(numpy.float16))
    check(case.outputs["a to int"], numpy.trunc(a).astype(numpy.int32))
    check(case.outputs["a to unsigned char"], numpy.clip(numpy.trunc(a), 0, 255).astype(numpy.uint8))
    check(case.outputs["a to bool"], a != 0)
    check(case.outputs["a to long long"], numpy.trunc(a).astype(numpy.int64))
    check(case.outputs["i to float"], i.astype(numpy.float32))
    check(case.outputs["i to short"], i.astype(numpy.int16))
    check(case.outputs["i to bool"], i != 0)


def test_fills(cases):
    case = cases["fill"]
    filled, zeroed = case.inputs["a"].copy(), case.inputs["i"].copy()
    filled[:, 1:3], zeroed[2:] = 2.5, 0
    check(case.outputs["filled"], filled)
    check(case.outputs["half"], numpy.full(9, 0.1, numpy.float16))
    check(case.outputs["zeroed"], zeroed)


def test_scaled_add(cases):
    case = cases["scaled add"]
    b, s, h = case.inputs["b"], case.inputs["s"], case.inputs["h"]
    one, two, three, four, five = (case.inputs[name] for name in ("one", "two", "three", "four", "five"))
    check(case.outputs["x1"], one + numpy.float32(0.25) * b)
    check(case.outputs["x2"], two - s * b)
    check(case.outputs["x3"], numpy.float32(0.5) * three + 2 * b)
    check(case.outputs["x4"], (four.astype(float) + 3 * h.astype(float)).astype(numpy.float16))
    check(case.outputs["x5"], five - s * five + s * b)
    rounded = b.astype(numpy.float16).astype(float)  # B becomes A's type before it is added
    check(case.outputs["x6"], (four.astype(float) + 3 * rounded).astype(numpy.float16))


def test_errors_name_what_is_wrong(cases):
    errors = cases["element-wise errors"].errors
    assert "the types float and half" in errors["types"]
    assert "{4} does not broadcast to {3}" in errors["shapes"]
    assert "Type mismatch between Binary op Tensor and constant" in errors["constant"]
    assert "EXPONENT has no form for elements of type int" in errors["operation"]
    assert "placeholder _2" in errors["placeholder"]
    assert "the output has the type float; expected bool" in errors["output"]


def test_subnormal_halves(cases):
    case = cases["subnormal halves"]
    x = case.inputs["x"]
    assert (x != 0).all()
    numpy.testing.assert_array_equal(case.outputs["sum"], x + x)
    numpy.testing.assert_array_equal(case.outputs["half"], x * numpy.float16(0.5))
