"""poplin, popnn and poprand against NumPy."""

import math

import numpy
import pytest
from nn_definitions import convolved, gradient, plain, sigmoid, softmax

pytestmark = pytest.mark.without_tensorflow

erf = numpy.vectorize(math.erf, otypes=[float])


def check(received, wanted, tolerance=None):
    wanted = numpy.asarray(wanted)
    assert received.shape == wanted.shape
    if received.dtype.kind == "f":
        step = tolerance or 16 * numpy.finfo(received.dtype).eps
        numpy.testing.assert_allclose(received.astype(float), wanted.astype(float), rtol=step, atol=step)
    else:
        numpy.testing.assert_array_equal(received, wanted)


@pytest.mark.parametrize("name", ["float", "half"])
def test_products(cases, name):
    case = cases[f"matmul {name}"]
    a, b, old, ga, gb = (case.inputs[key].astype(float) for key in ("a", "b", "old", "ga", "gb"))
    tolerance = 1e-5 if name == "float" else 2e-3
    check(case.outputs["a.b"], a @ b, tolerance)
    assert case.outputs["float"].dtype == numpy.float32
    check(case.outputs["float"], a @ b, 1e-5)
    check(case.outputs["transposed"], b.T @ a.T, tolerance)
    check(case.outputs["grouped"], ga @ gb, tolerance)
    check(case.outputs["sum"], old + 2 * a @ b, tolerance)
    check(case.outputs["other"], old + a @ b / 2, tolerance)
    assert "{13,21} times {13,21}" in case.errors["shapes"]


CONVOLUTIONS = {
    "plain": plain(2),
    "groups": plain(1),
    "half": plain(2),
    "strided": {
        "input": ([[0, 0], [0, 0]], [1, 1], [[1, 2], [2, 1]], [False, False]),
        "kernel": ([[0, 0], [0, 0]], [2, 1], [[0, 0], [0, 0]], [False, False]),
        "output": [(0, 0, 2, 0, 0), (0, 0, 3, 0, 0)],
    },
    "transforms": {
        "input": ([[1], [2]], [2], [[3], [1]], [True]),
        "kernel": ([[1], [0]], [2], [[1], [0]], [True]),
        "output": [(1, 2, 2, 1, 2)],
    },
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(cases, name):
    case, transform = cases[f"conv {name}"], CONVOLUTIONS[name]
    x, w, g = (case.inputs[key].astype(float) for key in "xwg")
    tolerance = 5e-3 if name == "half" else 2e-5
    check(case.outputs["y"], convolved(x, w, transform), tolerance)
    check(case.outputs["dx"], gradient(lambda unit: convolved(unit, w, transform), x, g), tolerance)
    weights = gradient(lambda unit: convolved(x, unit, transform), w, g)
    check(case.outputs["dw"], weights, 2 * tolerance)
    check(case.outputs["updated"], w - weights / 2, 2 * tolerance)


def test_biases(cases):
    case = cases["conv plain"]
    act, b = case.inputs["act"], case.inputs["b"]
    check(case.outputs["biased"], act + b[:, None, None])
    check(case.outputs["biases"], b + act.sum((0, 2, 3)) / 4)


@pytest.mark.parametrize("unit", ["", " unit"])
@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_triangular_systems(cases, triangle, unit):
    case, name = cases["solve"], triangle + unit
    a, b = case.inputs["a"].astype(float), case.inputs["b"].astype(float)
    masked = numpy.tril(a) if triangle == "lower" else numpy.triu(a)
    if unit:
        masked = masked * (1 - numpy.eye(4)) + numpy.eye(4)
    check(case.outputs[f"{name} mask"], masked)
    check(case.outputs[name], numpy.linalg.solve(masked, b), 1e-4)
    check(case.outputs[f"{name} right"], b.transpose(0, 2, 1) @ numpy.linalg.inv(masked), 1e-4)


def test_factors_and_grids(cases):
    outputs, a = cases["solve"].outputs, cases["solve"].inputs["a"]
    lower = numpy.linalg.cholesky(outputs["square"].astype(float))
    check(outputs["cholesky lower"], lower, 1e-3)
    check(outputs["cholesky upper"], lower.transpose(0, 2, 1), 1e-3)
    line = numpy.linspace(-1, 2, 7)
    check(outputs["line"], line)
    check(outputs["grid x"], numpy.tile(line, (4, 1)))
    check(outputs["grid y"], numpy.tile(a[0, 0][:, None], (1, 7)))


NON_LINEARITIES = {
    "sigmoid": sigmoid,
    "hard_sigmoid": lambda x: numpy.clip(0.2 * x + 0.5, 0, 1),
    "relu": lambda x: numpy.maximum(x, 0),
    "tanh": numpy.tanh,
    "gelu": lambda x: x / 2 * (1 + numpy.tanh(0.7978845608 * x * (1 + 0.044715 * x * x))),
    "gelu_erf": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "swish": lambda x: x * sigmoid(x),
    "softmax": softmax,
    "softmax_stable": softmax,
}


DERIVATIVES = {  # from the result y
    "sigmoid": lambda y: y * (1 - y),
    "hard_sigmoid": lambda y: numpy.where((y > 0) & (y < 1), numpy.float32(0.2), 0),
    "relu": lambda y: numpy.where(y > 0, 1, 0),
    "tanh": lambda y: 1 - y * y,
}


@pytest.mark.parametrize("function", NON_LINEARITIES)
@pytest.mark.parametrize("name", ["float", "half"])
def test_non_linearities(cases, name, function):
    case = cases[f"non-linearities {name}"]
    tolerance = 2e-5 if name == "float" else 4e-3
    check(case.outputs[function], NON_LINEARITIES[function](case.inputs["x"].astype(float)), tolerance)


@pytest.mark.parametrize("function", NON_LINEARITIES)
@pytest.mark.parametrize("name", ["float", "half"])
def test_gradients_of_non_linearities(cases, name, function):
    """A gradient's operand is the result as it was rounded, or the input of gelu and swish."""
    case = cases[f"non-linearities {name}"]
    x, g = case.inputs["x"].astype(float), case.inputs["g"].astype(float)
    y = case.outputs[function].astype(float)
    if "softmax" in function:
        wanted = y * (g - (y * g).sum(-1, keepdims=True))
    elif function in DERIVATIVES:
        wanted = g * DERIVATIVES[function](y)
    else:
        high, low = (NON_LINEARITIES[function](x + step) for step in (1e-6, -1e-6))
        wanted = g * (high - low) / 2e-6
    received = case.outputs[f"{function} gradient"]
    # In float, 1 + tanh(x) loses digits where it is nearly 0; a half has none of them.
    steps = 16 if function == "gelu" and name == "float" else 4
    check(received, wanted, steps * numpy.finfo(received.dtype).eps)


@pytest.mark.parametrize("name", ["float", "half"])
def test_scaled_log_and_spatial_softmax(cases, name):
    case = cases[f"non-linearities {name}"]
    x = case.inputs["x"].astype(float)
    tolerance = 2e-5 if name == "float" else 4e-3
    check(case.outputs["scaled"], softmax(x) * (16384 if name == "half" else 1), tolerance)
    check(case.outputs["log"], numpy.log(softmax(x)), tolerance)
    check(case.outputs["in place"], numpy.maximum(x, 0))
    p = softmax((x / 2).reshape(1, -1)).reshape(9, 17)
    rows, columns = p.sum(1) @ numpy.linspace(-1, 1, 9), p.sum(0) @ numpy.linspace(-1, 1, 17)
    check(case.outputs["spatial"], [[rows, columns]], tolerance)


def grouped(values, name):
    """Views {..., groups, the group's elements} of activations {4, 6, 5}."""
    if name == "batch":
        return values.transpose(1, 0, 2).reshape(6, -1)
    if name == "strided":
        values = values.reshape(4, 2, 3, 5).transpose(0, 2, 1, 3)
    return values.reshape(4 if name == "layer" else 12, -1)


@pytest.mark.parametrize("name", ["batch", "layer", "group", "strided"])
def test_norms(cases, name):
    case = cases["norms"]
    x, g, gamma, beta = (case.inputs[key].astype(float) for key in ("x", "g", "gamma", "beta"))
    mean, variance = (statistic(grouped(x, name), 1) for statistic in (numpy.mean, numpy.var))
    inverse = 1 / numpy.sqrt(variance + 1e-3)
    check(case.outputs[f"{name} mean"], mean)
    check(case.outputs[f"{name} inverse"], inverse)
    # Each element's group, to bring statistics back to the activations' shape.
    order = grouped(numpy.arange(x.size).reshape(x.shape), name)
    group = numpy.empty(x.size, int)
    group[order] = numpy.arange(len(order))[:, None]
    group = group.reshape(x.shape)
    white = (x - mean[group]) * inverse[group]
    check(case.outputs[f"{name} y"], white * gamma[:, None] + beta[:, None], 1e-5)
    check(case.outputs[f"{name} dgamma"], (white * g).sum((0, 2)), 1e-5)
    check(case.outputs[f"{name} dbeta"], g.sum((0, 2)), 1e-5)
    scaled = g * gamma[:, None]
    along, total = (grouped(values, name).mean(1)[group] for values in (white * scaled, scaled))
    check(case.outputs[f"{name} dx"], (scaled - total - white * along) * inverse[group], 2e-5)


def test_unbiased_variance(cases):
    case = cases["norms"]
    variance = case.inputs["x"].astype(float).var(2, ddof=1).reshape(-1)
    check(case.outputs["unbiased"], 1 / numpy.sqrt(variance + 1e-3))


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_pooling(cases, kind):
    case = cases[f"pool {kind}"]
    x, g = case.inputs["x"].astype(float), case.inputs["g"].astype(float)
    # One row of padding at both ends; the first column cut, one of padding at the end.
    wide = numpy.pad(x[..., 1:], ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=numpy.nan)
    y, dx = numpy.zeros(g.shape), numpy.zeros(wide.shape)
    for row, column in numpy.ndindex(*g.shape[2:]):
        window = (slice(None), slice(None), slice(2 * row, 2 * row + 3), slice(2 * column, 2 * column + 2))
        values = wide[window]
        inside = ~numpy.isnan(values)
        total, count = numpy.nansum(values, (2, 3)), inside.sum((2, 3))
        y[..., row, column] = {"max": numpy.nanmax(values, (2, 3)), "sum": total, "avg": total / count}[kind]
        share = g[:, :, row, column, None, None]
        chosen = values == y[:, :, row, column, None, None] if kind == "max" else inside
        dx[window] += chosen * (share / count[..., None, None] if kind == "avg" else share)
    check(case.outputs["y"], y, 1e-5)
    cut = numpy.zeros(x.shape)
    cut[..., 1:] = dx[:, :, 1:-1, :-1]
    check(case.outputs["dx"], cut, 1e-5)


def test_losses(cases):
    case = cases["loss"]
    p, labels = case.outputs["p"].astype(float), case.inputs["labels"]
    used = labels < 5
    hot = numpy.eye(5)[numpy.where(used, labels, 0)]
    deltas = (p - hot) * used[:, None]
    check(case.outputs["entropy"], -numpy.log((p * hot).sum(1)) * used, 1e-5)
    check(case.outputs["squares"], (deltas**2).sum(1) / 2, 1e-5)
    for name in ("entropy", "squares"):
        check(case.outputs[f"{name} deltas"], deltas, 1e-6)
        check(case.outputs[f"{name} correct"], (p.argmax(1) == labels).sum())
    check(case.outputs["max"], p.max(1))
    check(case.outputs["argmax"], p.argmax(1))
    check(case.outputs["min"], p.min(1))
    check(case.outputs["argmin"], p.argmin(1))
    places = numpy.argsort(-p, 1, kind="stable")[:, :3]
    check(case.outputs["places"], places)
    check(case.outputs["top"], numpy.take_along_axis(p, places, 1))


def test_random_distributions(cases):
    case = cases["random"]
    out = case.outputs
    moments = {  # mean, standard deviation, bounds
        "uniform": (0.5, 5 / math.sqrt(12), -2, 3),
        "half": (0.6, 1 / math.sqrt(12), 0.1, 1.1),
        "int": (0.5, math.sqrt(63 / 12), -3, 4),
        "bernoulli": (0.3, math.sqrt(0.21), 0, 1),
        "normal": (1, 2, -20, 20),
        "truncated": (0, 0.74299, -1.5, 1.5),
        "drawn": (0.5, 1 / math.sqrt(12), 0, 1),
    }
    for name, (mean, deviation, low, high) in moments.items():
        values = out[name].astype(float)
        assert abs(values.mean() - mean) < 5 * deviation / math.sqrt(values.size), name
        assert abs(values.std() - deviation) < 0.02 * deviation, name
        assert values.min() >= low and values.max() <= high, name
    assert set(numpy.unique(out["int"])) == set(range(-3, 5))
    logs = numpy.log(out["log"].astype(float))
    assert abs(logs.mean() - math.log(1000) / 2) < 0.05 and out["log"].min() >= 1 and out["log"].max() <= 1000


def test_random_seeds(cases):
    out = cases["random"].outputs
    numpy.testing.assert_array_equal(out["uniform"], out["uniform again"])
    assert (out["uniform"] == out["uniform other"]).mean() < 0.001
    numpy.testing.assert_array_equal(out["drawn"], out["drawn again"])
    assert (out["drawn"] == out["drawn next"]).mean() < 0.001
    assert "the seed has the shape {2} and the type float. Pass two" in cases["random"].errors["seed"]


def test_dropout(cases):
    case = cases["random"]
    like, dropped, shaped = case.inputs["like"], case.outputs["dropout"], case.outputs["shaped"]
    kept = dropped != 0
    assert abs(kept.mean() - 0.75) < 0.01
    check(dropped[kept], like[kept] / numpy.float32(0.75))
    rows = (shaped != 0).mean(1)
    assert set(numpy.round(rows)) == {0, 1}
    wanted = like.reshape(100, 1000) * 2 * numpy.round(rows)[:, None]
    check(shaped, wanted)
