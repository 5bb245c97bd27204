"""Functions that take the caller's own cell or compute set, against NumPy."""

import numpy
import pytest

pytestmark = pytest.mark.without_tensorflow


def check(received, wanted):
    numpy.testing.assert_allclose(received.astype(float), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "order"), [("own cell", range(5)), ("own cell reversed", range(4, -1, -1))])
def test_own_cells(cases, name, order):
    case = cases[name]
    x, state = case.inputs["x"], case.inputs["start"][0]
    states = numpy.zeros_like(x)
    for step in order:
        states[step] = state = state / 2 + x[step] * step
    check(case.outputs["states"], states)
    check(case.outputs["out"], 2 * states)
    check(case.outputs["pair"], numpy.concatenate([states, states + 1]))
    check(case.outputs["made"], -states)
    check(case.outputs["last"][0], state)
    numpy.testing.assert_array_equal(case.outputs["start after it"], case.inputs["start"])


def test_lengths_of_own_cells_are_refused(cases):
    message = cases["own cell refused"].errors["lengths"]
    assert message.startswith("popnn::rnn::Rnn")
    assert "varTimeSteps" in message


def test_shifted_sequences(cases):
    case = cases["shifted sequence"]
    wanted = numpy.concatenate([case.inputs["first"][None], case.inputs["x"][:-1]])
    numpy.testing.assert_array_equal(case.outputs["shifted"], wanted)


def test_compute_sets_of_callers(cases):
    case = cases["compute sets of the caller"]
    x, y = case.inputs["x"], case.inputs["y"]
    check(case.outputs["sum"], x.sum(0))
    check(case.outputs["most"], x.max(1))
    check(case.outputs["written"], y.prod(1))
    numpy.testing.assert_array_equal(case.outputs["halves"], x.astype(numpy.float16))
    numpy.testing.assert_array_equal(case.outputs["back"], x)
    check(case.outputs["relu"], numpy.maximum(y, 0))
    check(case.outputs["gradient"], x * (1 - x * x))
    numpy.testing.assert_array_equal(case.outputs["filled"], numpy.repeat([[7], [-2.5]], 6, 1))
    zeros = case.inputs["zeros"].copy()
    zeros[[1, 2, 10, 11]] = 0
    numpy.testing.assert_array_equal(case.outputs["zeros"], zeros)
