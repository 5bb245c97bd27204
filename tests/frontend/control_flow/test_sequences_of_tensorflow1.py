"""In which sequences loops and branches of TensorFlow 1 give their values: as in a session of stock TensorFlow."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.framework import function
from tensorflow.python.ops import control_flow_util

v1 = tf.compat.v1
Pair = collections.namedtuple("Pair", ["count", "value"])
START = (0, 1.0)


@pytest.fixture(autouse=True)
def control_flow(monkeypatch):
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)


def loop(body, start=START, **options):
    values = [tf.constant(one) for one in start]
    return v1.while_loop(lambda count, *_: count < 3, body, type(start)(values), **options)


def branches(one, other, **options):
    return v1.cond(tf.constant([1.0])[0] > 0, lambda: one(tf.constant(1.0)), lambda: other(tf.constant(2.0)), **options)


BUILT = {
    "a loop whose body returns a tuple": lambda: loop(lambda i, a: (i + 1, a * 2), [*START]),
    "a loop whose body returns a list": lambda: loop(lambda i, a: [i + 1, a * 2]),
    "a loop whose body returns a named tuple": lambda: loop(lambda i, a: Pair(i + 1, a * 2)),
    "a loop with one value": lambda: loop(lambda i: i + 1, [0]),
    "a loop with one value in a tuple": lambda: loop(lambda i: (i + 1,), [0]),
    "a loop that keeps the structure": lambda: loop(lambda i: i + 1, (0,), return_same_structure=True),
    "a loop with a largest number": lambda: loop(lambda i, a: [i + 1, a * 2], [*START], maximum_iterations=2),
    "a loop in a loop": lambda: loop(lambda i, a: (i + 1, loop(lambda j, b: [j + 1, b * a], (0, 2.0))[1])),
    "branches with one value": lambda: branches(lambda a: a * 2, lambda a: a),
    "branches with one in a list": lambda: branches(lambda a: [a * 2], lambda a: [a]),
    "branches with one in a list, and one": lambda: branches(lambda a: [a * 2], lambda a: a),
    "branches with one in a tuple, and a list": lambda: branches(lambda a: (a * 2,), lambda a: [a]),
    "strict branches": lambda: branches(lambda a: [a * 2], lambda a: [a], strict=True),
    "branches with two": lambda: branches(lambda a: [a * 2, a], lambda a: [a, a]),
    "cases": lambda: v1.case([(tf.constant([1.0])[0] > 2, lambda: [tf.constant(1.0)])], lambda: [tf.constant(2.0)]),
    "strict cases": lambda: v1.case(
        [(tf.constant([1.0])[0] > 2, lambda: [tf.constant(1.0)])], lambda: [tf.constant(2.0)], strict=True
    ),
    "branches by number": lambda: tf.switch_case(
        tf.constant(1), [lambda: [tf.constant(1.0)], lambda: [tf.constant(2.0)]]
    ),
}


def kinds(built):
    """The types of sequences in it; a tensor is a tensor."""
    if not isinstance(built, (list, tuple)):
        return "tensor"
    return type(built).__name__, [kinds(one) for one in built]


@pytest.mark.parametrize("build", BUILT.values(), ids=BUILT)
def test_sequences_and_values_are_those_of_stock_tensorflow(build):
    with tf.Graph().as_default(), v1.Session() as session:
        stock = build()
        expected, values = kinds(stock), session.run(stock)
    ipu.config.IPUConfig().configure_ipu_system()
    found = []

    def model():
        built = build()
        found.append(kinds(built))
        return tf.nest.flatten(built)

    with tf.Graph().as_default(), v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(model)
        np.testing.assert_array_equal(session.run(result), tf.nest.flatten(values))
    assert found == [expected]


def test_control_flow_of_tensorflow_2_gives_what_it_takes(monkeypatch):
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", True)
    found = []

    def model():
        one, other = loop(lambda i, a: (i + 1, a * 2), [*START]), branches(lambda a: [a * 2], lambda a: [a])
        found.extend([kinds(one), kinds(other)])
        return one[1] + other[0]

    with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ipu.ipu_compiler.compile(model)
    assert found == [("list", ["tensor", "tensor"]), ("list", ["tensor"])]


def repeated(x):
    return v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tf.constant(0), x])[1]


def chosen(x):
    return v1.cond(x[0] > 0, lambda: x * 2, lambda: repeated(x))


def in_arrays(x):
    array = v1.TensorArray(tf.float32, 3, element_shape=[2])
    step = lambda i, array: (i + 1, array.write(i, x * tf.cast(i, tf.float32)))  # noqa: E731
    return v1.while_loop(lambda i, _: i < 3, step, (tf.constant(0), array))[1].concat()


@pytest.mark.parametrize("inner", [repeated, chosen, in_arrays])
def test_functions_by_defun_have_loops_and_branches(inner):
    """TensorFlow 1 inlines such functions, and XLA takes its loops; only functional ones are left to it here."""
    x = np.float32([0.5, -2.0])

    def backward(op, gradient):
        return repeated(op.inputs[0]) * tf.reduce_sum(gradient)

    def model(x):
        @function.Defun(tf.float32, python_grad_func=backward)
        def outer(x):
            return inner(x)

        y = outer(x * 3)
        return y, tf.gradients(y, x)[0]

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [2])
        expected = session.run(model(fed), {fed: x})
    ipu.config.IPUConfig().configure_ipu_system()
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            fed = v1.placeholder(tf.float32, [2])
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(model, [fed])
        for one, other in zip(session.run(result, {fed: x}), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_function_made_with_a_loop_of_a_graph_is_refused():
    ipu.config.IPUConfig().configure_ipu_system()

    @function.Defun(tf.float32)
    def repeats(x):
        return repeated(x)

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [2])
        np.testing.assert_array_equal(session.run(repeats(fed), {fed: [2.0, 3.0]}), [16.0, 81.0])
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(repeats, [fed])
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="a loop of TensorFlow 1 in a function .* Call it first"
        ):
            session.run(result, {fed: [2.0, 3.0]})
