"""Recurrent layers, CTC losses, multi-convolutions and histograms against NumPy."""

import collections
import itertools

import numpy
import pytest
from nn_definitions import convolved, gradient, plain, sigmoid, softmax

pytestmark = pytest.mark.without_tensorflow


def check(received, wanted, tolerance=2e-5):
    numpy.testing.assert_allclose(received.astype(float), wanted, rtol=tolerance, atol=tolerance)


def hard_sigmoid(x):
    return numpy.clip(0.2 * x + 0.5, 0, 1)


def differences(function, arrays):
    """The gradient of a scalar function for each of the arrays, by central differences in float64."""
    step, found = 1e-6, {}
    for name, array in arrays.items():
        slope = numpy.zeros(array.shape)
        for place in numpy.ndindex(*array.shape):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * step
                values.append(function({**arrays, name: moved}))
            slope[place] = (values[0] - values[1]) / (2 * step)
        found[name] = slope
    return found


def lstm(a, lengths, order="fico", activation=numpy.tanh, gate=sigmoid, kept=True):
    """The outputs, and the last output and cell state; `order` has the gates' places: f, i, candidate and o."""
    h, c, outputs = a["h"], a["c"], []
    for step, x in enumerate(a["x"]):
        part = {name: x @ a["wi"][place] + h @ a["wo"][place] + a["b"][place] for place, name in enumerate(order)}
        new = gate(part["f"]) * c + gate(part["i"]) * activation(part["c"])
        alive = (step < lengths)[:, None]
        c = numpy.where(alive, new, c)
        h = numpy.where(alive, gate(part["o"]) * activation(new), h)
        outputs.append(numpy.where(alive, h, 0))
    if not kept:
        ended = (lengths < len(a["x"]))[:, None]
        h, c = numpy.where(ended, 0, h), numpy.where(ended, 0, c)
    return numpy.array(outputs), h, c


LSTMS = {
    "plain": {},
    "cell": {},
    "half": {},
    "last": {},
    "other": {"order": "iofc", "activation": softmax, "gate": hard_sigmoid},
    "lengths": {"kept": False},
    "kept": {},
}
NAMES = ("x", "h", "c", "wi", "wo", "b")


@pytest.mark.parametrize("name", LSTMS)
def test_lstms(cases, name):
    case, tolerance = cases[f"lstm {name}"], 6e-3 if name == "half" else 2e-5
    inputs = {key: values.astype(float) for key, values in case.inputs.items()}
    lengths = inputs.get("lengths", numpy.full(3, 5))
    full, variable = case.outputs["out"].ndim == 3, "lengths" in inputs
    outputs, last, cell = lstm({key: inputs[key] for key in NAMES}, lengths, **LSTMS[name])
    check(case.outputs["out"], outputs if full else last, tolerance)
    check(case.outputs["cell"], cell, tolerance)

    def loss(arrays):
        outputs, last, cell = lstm(arrays, lengths, **LSTMS[name])
        total = ((outputs if full else last) * inputs["g"]).sum()
        if not variable:  # else the gradient of the last state counts as 0
            total += (cell * inputs["gc"]).sum() + (0 if name == "cell" else (last * inputs["gh"]).sum())
        return total

    for key, wanted in differences(loss, {key: inputs[key] for key in NAMES}).items():
        check(case.outputs[f"d{key}"], wanted, 4 * tolerance)


def gru(a, lengths, order="ruc", after=False):
    h, outputs = a["h"], []
    for step, x in enumerate(a["x"]):
        part = {
            name: x @ a["wi"][place] + (a["b"][place, 0] if after else a["b"][place])
            for place, name in enumerate(order)
        }
        own = {name: h @ a["wo"][place] + (a["b"][place, 1] if after else 0) for place, name in enumerate(order)}
        r, u = sigmoid(part["r"] + own["r"]), sigmoid(part["u"] + own["u"])
        candidate = numpy.tanh(part["c"] + (r * own["c"] if after else (r * h) @ a["wo"][order.index("c")]))
        alive = (step < lengths)[:, None]
        h = numpy.where(alive, u * h + (1 - u) * candidate, h)
        outputs.append(numpy.where(alive, h, 0))
    return numpy.array(outputs), h


GRUS = {"plain": {}, "half": {}, "last": {}, "after": {"after": True}, "lengths": {"order": "cru"}}


@pytest.mark.parametrize("name", GRUS)
def test_grus(cases, name):
    case, tolerance = cases[f"gru {name}"], 6e-3 if name == "half" else 2e-5
    inputs = {key: values.astype(float) for key, values in case.inputs.items()}
    lengths = inputs.get("lengths", numpy.full(3, 5))
    arrays = {key: inputs[key] for key in ("x", "h", "wi", "wo", "b")}
    which = 0 if case.outputs["out"].ndim == 3 else 1
    check(case.outputs["out"], gru(arrays, lengths, **GRUS[name])[which], tolerance)
    wanted = differences(lambda moved: (gru(moved, lengths, **GRUS[name])[which] * inputs["g"]).sum(), arrays)
    for key, slope in wanted.items():
        check(case.outputs[f"d{key}"], slope, 4 * tolerance)


def test_errors_of_layers(cases):
    errors = cases["lstm plain"].errors
    assert "Use SIGMOID, HARD_SIGMOID, RELU, TANH or SOFTMAX" in errors["activation"]
    assert errors["option"] == (
        "Unrecognised option 'partialType' of popnn::lstm::createWeightsKernel. Did you mean 'partialsType'? "
        "If not, leave the option out."
    )
    assert "cellOrder" in errors["order"]


def test_errors_of_ctc_losses(cases):
    errors = cases["ctc plain"].errors
    assert "the blank class is 4" in errors["blank"]
    assert not errors["fits"]  # an element after the label's length is not read
    assert "sequence 0 has 3 steps and a label of 1; expected at most 2 and 2" in errors["steps"]
    assert "sequence 0 has 2 steps and a label of 3; expected at most 2 and 2" in errors["length"]
    assert "the label of sequence 0 has the class 2; expected at most 1" in errors["class"]


def ctc_loss(logs, label, steps):
    """The definition: the sum over all paths that become the label without repetitions and blanks (class 0)."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=steps):
        shorter = [symbol for symbol, _ in itertools.groupby(path) if symbol != 0]
        if shorter == list(label):
            total += numpy.exp(sum(logs[step, symbol] for step, symbol in enumerate(path)))
    return -numpy.log(total) if total else numpy.inf


def log_softmax(x):
    return numpy.log(softmax(x))


def check_ctc(case, name, i):
    """Sequence i of a case: its loss, and its gradient by differences."""
    steps, label = case.inputs["steps"][i], case.inputs["labels"][i, : case.inputs["lengths"][i]]
    logits, received = case.inputs["logits"][:steps, i].astype(float), case.outputs["gradient"][:, i]
    loss = ctc_loss(log_softmax(logits), label, steps)
    wanted = 0 if name == "zero" and numpy.isinf(loss) else loss
    check(case.outputs["loss"][i], wanted)
    check(case.outputs["alone"][i], wanted)
    assert not received[steps:].any()
    if numpy.isinf(loss):
        assert (received[:steps] == 0).all() if name == "zero" else numpy.isnan(received[:steps]).all()
    elif name == "logs":
        slope = differences(lambda moved: ctc_loss(moved["data"], label, steps), {"data": log_softmax(logits)})
        check(received[:steps], slope["data"], 1e-4)
    else:
        slope = differences(lambda moved: ctc_loss(log_softmax(moved["data"]), label, steps), {"data": logits})
        check(received[:steps], slope["data"], 1e-4)


@pytest.mark.parametrize("name", ["plain", "logs", "zero"])
def test_ctc_losses(cases, name):
    case = cases[f"ctc {name}"]
    assert numpy.isinf(cases["ctc plain"].outputs["loss"]).tolist() == [False, False, False, True]
    for i in range(4):
        check_ctc(case, name, i)


def likeliest_labels(logs, count):
    """Labels and the negative logarithms of their probabilities, by all paths of {steps, classes}; the blank is 0."""
    sums = collections.Counter()
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        label = tuple(symbol for symbol, _ in itertools.groupby(path) if symbol != 0)
        sums[label] += numpy.exp(sum(logs[step, symbol] for step, symbol in enumerate(path)))
    return [(list(label), -numpy.log(total)) for label, total in sums.most_common(count)]


def test_beam_searches(cases):
    case = cases["beam search"]
    costs, lengths, labels = (case.outputs[key] for key in ("costs", "lengths", "labels"))
    for i, steps in enumerate(case.inputs["steps"]):
        wanted = likeliest_labels(log_softmax(case.inputs["logits"][:steps, i].astype(float)), 4)
        for path, (label, cost) in enumerate(wanted):
            assert labels[i, path].tolist() == label + [0] * (5 - len(label))
            assert lengths[i, path] == len(label)
            check(costs[i, path], cost, 1e-4)
        assert numpy.isinf(costs[i, len(wanted) :]).all() and not lengths[i, len(wanted) :].any()
    check(case.outputs["alone"], costs, 1e-5)
    assert (case.outputs["narrow"][:, 0] >= costs[:, 0] - 1e-5).all()
    assert "2 paths are asked for, of 1 beams" in case.errors["paths"]
    assert "the blank class is 3" in case.errors["blank"]


def test_multi_convolutions(cases):
    case = cases["multi convolution"]
    inputs = {key: values.astype(float) for key, values in case.inputs.items()}
    check(case.outputs["ya"], convolved(inputs["xa"], inputs["wa"], plain(2)))
    check(case.outputs["yb"], convolved(inputs["xb"], inputs["wb"], plain(1)))
    slope = gradient(lambda unit: convolved(inputs["xb"], unit, plain(1)), inputs["wb"], inputs["g"])
    check(case.outputs["dw"], slope)
    check(case.outputs["updated"], inputs["wb"] - slope / 2)
    assert "option 'planType' has the value 'cereal'; expected one of: serial, parallel" in case.errors["plan"]
    assert "the index is 1 of 1 convolutions" in case.errors["index"]


def test_histograms(cases):
    case = cases["histogram"]
    x, levels = case.inputs["x"], case.inputs["levels"]
    wanted = numpy.histogram(x, [-numpy.inf, *levels, numpy.inf])[0]
    numpy.testing.assert_array_equal(case.outputs["counts"], wanted)
    assert case.outputs["floats"].dtype == numpy.float32
    numpy.testing.assert_array_equal(
        case.outputs["floats"], numpy.histogram(abs(x), [-numpy.inf, *levels, numpy.inf])[0]
    )
    few = numpy.histogram(abs(case.inputs["h"]), [-numpy.inf, *case.inputs["few"], numpy.inf])[0]
    numpy.testing.assert_array_equal(case.outputs["added"], case.inputs["sum"] + few)
    assert "Leave one of them out" in case.errors["both"]


def test_hardware_seeds(cases):
    case = cases["hardware seeds"]
    for name in ("first", "second", "given"):
        numpy.testing.assert_array_equal(case.outputs[name], case.outputs[f"{name} again"])
    assert (case.outputs["first"] != case.outputs["second"]).any()
    assert (case.outputs["first"] != case.outputs["given"]).any()
    numpy.testing.assert_array_equal(case.outputs["read"], case.inputs["given"])
    assert "expected unsigned int {16,6,4}" in case.errors["shape"]
