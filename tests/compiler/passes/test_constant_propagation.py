"""Axes and shapes that a gradient takes from its forward function are constants, wherever that function is called."""

import numpy as np
import pytest
import tensorflow as tf
from harness import check_session
from slow_cases import slowly

pytestmark = pytest.mark.one_version

MATRIX = np.arange(9, dtype=np.float32).reshape(3, 3)
WEIGHTS = np.array([[1, 10, 100], [2, 20, 200], [3, 30, 300]], np.float32)

INNER = {
    # Of a square matrix a gradient along the wrong axis has the right shape.
    "gather": lambda x: tf.gather(x, [0, 0, 1], axis=1),
    "reduction": lambda x: x * tf.reduce_sum(x, axis=1, keepdims=True),
    "concatenation": lambda x: tf.concat([x * x, x], axis=1)[:, 2:5],
    "transpose": lambda x: tf.transpose(x, [1, 0]) * 2.0,
    "reshape": lambda x: tf.reshape(tf.reshape(x, [9]) ** 2, [3, 3]),
}


def model_of(inner, where):
    def model(parts, x, chosen):
        called = tf.function(inner, autograph=False)
        if where == "branch":
            made = tf.cond(tf.reduce_mean(chosen) > 0, lambda: called(x) * 2.0, lambda: called(x * x) * 3.0)
        elif where == "both sides of a case":
            made = tf.switch_case(
                tf.cast(chosen[0] > 0, tf.int32), [lambda: called(x), lambda: called(x) + 1.0, lambda: x]
            )
        else:
            made = tf.function(lambda y: called(y) + y, autograph=False)(x)
        (gradient,) = tf.gradients(tf.reduce_sum(made * WEIGHTS), x)
        return [made, gradient]

    return model


def loop(body, x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, body(y)), [0, x], maximum_iterations=3)[1]


# What a gradient takes from the loop comes in TensorLists, one element an iteration.
LOOPS = {
    "a call": lambda called, chosen: lambda x: loop(lambda y: called(y) * 0.1 + 1.0, x),
    "a branch": lambda called, chosen: (
        lambda x: loop(
            lambda y: tf.cond(tf.reduce_mean(chosen) > 0, lambda: called(y) * 0.1, lambda: called(-y) * 0.2) + 1.0, x
        )
    ),
    "a loop": lambda called, chosen: lambda x: loop(lambda y: loop(lambda z: called(z) * 0.2 + 0.3, y), x),
    "a function with a loop": lambda called, chosen: tf.function(
        lambda x: loop(lambda y: called(y) * 0.1 + 1.0, x), autograph=False
    ),
}


# All that is called in one place, and all places with one of them.
@pytest.mark.ci_cases(5)
@pytest.mark.parametrize(
    ("where", "what"),
    [*(("a loop", what) for what in INNER), *(slowly(where, "gather") for where in LOOPS if where != "a loop")],
)
def test_gradients_of_loops(ipus, execution_mode, what, where):
    ipus(1)

    def model(parts, x, chosen):
        made = LOOPS[where](tf.function(INNER[what], autograph=False), chosen)(x)
        (gradient,) = tf.gradients(tf.reduce_sum(made * WEIGHTS), x)
        return [made, gradient]

    for chosen in (1.0, -1.0) if where == "a branch" else (1.0,):
        check_session(model, [MATRIX / 10, np.full(2, chosen, np.float32)])


def test_what_differs_between_iterations_stays_a_value(ipus):
    """The gradient takes a factor of 2 in the first iteration and of 5 in the others."""
    ipus(1)

    def model(parts, x):
        def body(i, y):
            factor = tf.cond(i > 0, lambda: tf.constant(5), lambda: tf.constant(2))
            return i + 1, y * tf.cast(factor, tf.float32)

        made = tf.while_loop(lambda i, y: i < 3, body, [0, x], maximum_iterations=3)[1]
        return [made, tf.gradients(made, x)[0]]

    run = check_session(model, [MATRIX])
    np.testing.assert_array_equal(run.steps[0][1], np.full([3, 3], 2 * 5 * 5))


@pytest.mark.ci_cases(7)
@pytest.mark.parametrize(
    ("where", "what"),
    [
        *(("branch", what) for what in INNER),
        slowly("both sides of a case", "gather"),
        slowly("call in a call", "gather"),
    ],
)
def test_gradients(ipus, execution_mode, what, where):
    ipus(1)
    for chosen in (1.0,) if where == "call in a call" else (1.0, -1.0):
        check_session(model_of(INNER[what], where), [MATRIX, np.full(2, chosen, np.float32)])


def test_the_gradient_of_a_gather_worked_out_by_hand(ipus):
    """Columns 0, 0, 1 are taken, so that column 0 gets the weights of the first two, and column 1 that of the third."""
    ipus(1)

    def model(parts, x, chosen):
        return model_of(INNER["gather"], "branch")(parts, x, chosen)[1]

    run = check_session(model, [MATRIX, np.ones(2, np.float32)])
    expected = 2 * np.stack([WEIGHTS[:, 0] + WEIGHTS[:, 1], WEIGHTS[:, 2], np.zeros(3)], 1)
    np.testing.assert_array_equal(run.steps[0][0], expected)


def test_results_that_differ_between_branches_stay_values(ipus):
    ipus(1)

    def model(parts, x, chosen):
        def branch(axis):
            return lambda: (x * 1.0, tf.constant(axis))

        made, number = tf.cond(tf.reduce_mean(chosen) > 0, branch(0), branch(1))
        return [made + tf.cast(number, tf.float32), number]

    for chosen, number in ((1.0, 0), (-1.0, 1)):
        run = check_session(model, [MATRIX, np.full(2, chosen, np.float32)])
        assert run.steps[0][1] == number
