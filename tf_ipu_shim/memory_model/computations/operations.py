"""Names the operation and dtype in which PopLibs computes an element-wise instruction or op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
from tf_ipu_shim.memory_model.computations.fusions import distinct_elements
from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import dtype_of

_BY_OPCODE = {
    "abs": "absolute", "and": "bitwise_and", "cosine": "cos", "erf": "erf", "exponential": "exponent",
    "exponential-minus-one": "exponent_minus_one", "imag": "negate", "log": "logarithm",
    "log-plus-one": "logarithm_one_plus", "logistic": "sigmoid", "map": "add", "not": "bitwise_not",
    "or": "bitwise_or", "popcnt": "popcount", "real": "negate", "complex": "add", "reduce-precision": "nearby_int",
    "round-nearest-afz": "round", "round-nearest-even": "nearby_int", "shift-right-arithmetic":
    "shift_right_sign_extend", "shift-right-logical": "shift_right", "sign": "signum", "sine": "sin",
    "stochastic-convert": "nearby_int", "xor": "bitwise_xor",
}  # fmt: skip
_OF_TRUTH_VALUES = {
    "add": "logical_or", "and": "logical_and", "maximum": "logical_or", "minimum": "logical_and",
    "multiply": "logical_and", "not": "logical_not", "or": "logical_or", "xor": "not_equal",
}  # fmt: skip
_DIRECTIONS = {"EQ": "equal", "NE": "not_equal", "LT": "less_than", "LE": "less_than_equal", "GT": "greater_than",
               "GE": "greater_than_equal"}  # fmt: skip
_BY_OP = {
    "Abs": "absolute", "Acos": "asin", "Asin": "asin", "Atan": "atan2", "Atan2": "atan2", "Ceil": "ceil", "Cos": "cos",
    "Cosh": "exponent", "Div": "divide", "DivNoNan": "divide", "Equal": "equal", "Erf": "erf", "Exp": "exponent",
    "Expm1": "exponent_minus_one", "Floor": "floor", "FloorDiv": "divide", "FloorMod": "remainder",
    "Greater": "greater_than", "GreaterEqual": "greater_than_equal", "IsFinite": "is_finite", "IsInf": "is_inf",
    "IsNan": "is_nan", "Less": "less_than", "LessEqual": "less_than_equal", "Log": "logarithm",
    "Log1p": "logarithm_one_plus", "LogicalAnd": "logical_and", "LogicalNot": "logical_not",
    "LogicalOr": "logical_or", "Maximum": "maximum", "Minimum": "minimum", "Mod": "remainder", "Mul": "multiply",
    "Neg": "negate", "NotEqual": "not_equal", "Pow": "power", "RealDiv": "divide", "Reciprocal": "inverse",
    "Relu": "relu", "ReluGrad": "relu_grad", "Relu6": "clamp", "Rint": "nearby_int", "Round": "round",
    "Rsqrt": "rsqrt", "RsqrtGrad": "multiply", "Select": "select", "SelectV2": "select", "Sigmoid": "sigmoid",
    "SigmoidGrad": "sigmoid_grad", "Sign": "signum", "Sin": "sin", "Sinh": "exponent", "Softmax": "exponent",
    "LogSoftmax": "exponent", "Sqrt": "sqrt", "Square": "square", "Sub": "subtract", "Tan": "tan", "Tanh": "tanh",
    "TanhGrad": "tanh_grad", "TruncateDiv": "divide", "TruncateMod": "remainder",
}  # fmt: skip


def operation_of(instruction: Any, operands: Sequence[Any]) -> tuple[str, str]:
    """Returns PopLibs' operation for an element-wise instruction, and the dtype it computes in."""
    opcode = instruction.opcode
    dtype = dtype_of(operands[-1 if opcode == "select" else 0].shape) if operands else dtype_of(instruction.shape)
    if opcode == "compare":
        return _DIRECTIONS.get(instruction.comparison_direction, "equal"), dtype
    if dtype == "bool" and opcode in _OF_TRUTH_VALUES:
        return _OF_TRUTH_VALUES[opcode], dtype
    return _BY_OPCODE.get(opcode, opcode.replace("-", "_")), dtype


def operation_of_op(op: str) -> str:
    """Returns PopLibs' operation for an element-wise TensorFlow op."""
    return _BY_OP.get(op, "add")


def elementwise_sizes(instruction: Any, operands: Sequence[Any], by_id: Mapping[int, Any]) -> ElementwiseSizes:
    """Returns the computation of an element-wise instruction, and which of its operands are broadcast."""
    operation, dtype = operation_of(instruction, operands)
    if operation == "power":
        exponent = _constant(operands[1], by_id)
        operation = operation if exponent is None else _POWERS.get(exponent, operation)
    size = elements_of(instruction.shape)
    sizes = ElementwiseSizes(size, len(operands), operation, dtype)
    for operand in operands:
        if operand.opcode != "broadcast":
            continue
        source = elements_of(by_id[operand.operand_ids[0]].shape)
        if source == 1:
            sizes = sizes if sizes.form else sizes._replace(form="scalar")
            continue
        form, row = _form_and_row(operand, source)
        sizes = sizes._replace(broadcast=sizes.broadcast + source, form=form, row=row)
    return sizes


_POWERS = {-1.0: "inverse", -0.5: "rsqrt", 0.5: "sqrt", 2.0: "square", 3.0: "multiply", 4.0: "multiply"}
"""The op that the IPU's compiler substitutes for a power with a known exponent."""


def _constant(instruction: Any, by_id: Mapping[int, Any]) -> float | None:
    """Returns the only element of a known tensor, or None."""
    while instruction.opcode in ("broadcast", "convert", "copy", "reshape"):
        instruction = by_id[instruction.operand_ids[0]]
    found = distinct_elements(instruction.literal) if instruction.opcode == "constant" else set()
    return float(found.pop()) if len(found) == 1 else None


def _form_and_row(broadcast: Any, source: int) -> tuple[str, int]:
    """Returns how a broadcast tensor combines with another, see `vertices.elementwise`."""
    extents, mapped = list(broadcast.shape.dimensions), set(broadcast.dimensions)
    run = 1
    for axis in reversed(range(len(extents))):
        if extents[axis] > 1 and axis in mapped:
            break
        run *= extents[axis]
    return ("outer", run) if run > 1 else ("inner", source)
