"""`tf.Assert` in programs and beside them: what does not hold stops the run with an InternalError, in both ways."""

import re

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import config, ipu_compiler, loops, scopes

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")

v1 = tf.compat.v1


def check(function, good, bad, expected):
    """Runs a compiled function with input for which its asserts hold, then do not, then hold again."""
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, np.shape(good))
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(function, [fed])
        session.run(v1.global_variables_initializer())
        first = session.run(result, {fed: good})
        with pytest.raises(tf.errors.InternalError, match="assertion failed") as error:
            session.run(result, {fed: bad})
        again = session.run(result, {fed: good})
    np.testing.assert_allclose([first, again], expected)
    return str(error.value)


def test_a_condition():
    def function(x):
        with tf.control_dependencies([v1.assert_positive(x, message="weights are to be positive")]):
            return x * 2.0

    message = check(function, np.float32([1, 2]), np.float32([1, -2]), [[2, 4], [2, 4]])
    assert "weights are to be positive" in message
    assert re.search(r"Op \S+ \(Assert\), made at .*test_assertions.py:\d+, in function\.", message)


def test_variables_are_left_alone(execution_mode):
    """What a stopped run would have written is not there: 1 + 1 after the first run, 2 + 1 after the third."""

    def function(x):
        total = v1.get_variable("total", initializer=1.0, use_resource=True)
        added = total.assign_add(1.0)
        checked = v1.Assert(x > 0.0, [x])
        with tf.control_dependencies([added, checked]):
            return x + added

    check(function, np.float32(1), np.float32(-1), [3, 4])


def test_a_loop():
    """The assert is in the loop's body, and fails in its third iteration alone."""

    def function(x):
        def body(step, total):
            with tf.control_dependencies([v1.assert_less(step, x)]):
                return step + 1.0, total + step

        return loops.repeat(4, body, [0.0, 0.0])[1]

    check(function, np.float32(4), np.float32(2), [6, 6])


def test_a_branch():
    def function(x):
        def checked():
            with tf.control_dependencies([v1.assert_less(x, 5.0, message="too large")]):
                return x * 10.0

        return tf.cond(x > 3.0, checked, lambda: x)

    assert "too large" in check(function, np.float32(4), np.float32(6), [40, 40])
    check(function, np.float32(2), np.float32(6), [2, 2])


def test_integers_of_which_xla_must_know_some():
    """The lowering asks TensorFlow which: it knows the XLA program by then, without what stops it."""

    def function(x):
        size = tf.cast(x[0], tf.int32)
        with tf.control_dependencies([v1.assert_less(size, 5, message="too many")]):
            return tf.cast(size + tf.range(3), tf.float32)

    def outside(x):
        with scopes.ipu_shard(0):
            index = tf.cast(x, tf.int32)
        with scopes.ipu_shard(1):
            return function(tf.cast(index, tf.float32)) + tf.cast(index[0], tf.float32)

    check(function, np.float32([1]), np.float32([7]), [[1, 2, 3]] * 2)
    config.reset_ipu_configuration()
    configure(2)
    check(outside, np.float32([1]), np.float32([7]), [[2, 3, 4]] * 2)


def test_two_ipus():
    config.reset_ipu_configuration()
    configure(2)

    def function(x):
        with scopes.ipu_shard(0):
            y = x + 1.0
        with scopes.ipu_shard(1), tf.control_dependencies([v1.assert_less(y, 10.0)]):
            return y * y

    check(function, np.float32(2), np.float32(11), [9, 9])


def test_a_function_of_tensorflow_2():
    @tf.function(jit_compile=True)
    def step(x):
        tf.debugging.assert_greater(x, 0.0, message="x is to be positive")
        return tf.sqrt(x)

    with tf.device(IPU):
        assert float(step(tf.constant(9.0))) == 3
        with pytest.raises(tf.errors.InternalError, match="x is to be positive"):
            step(tf.constant(-9.0))
        assert float(step(tf.constant(4.0))) == 2


def test_beside_programs():
    """A plain op of a session says the values, as TensorFlow does."""
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device(IPU):
            x = v1.placeholder(tf.float32, [])
            with tf.control_dependencies([v1.Assert(x > 0.0, ["x is", x])]):
                result = x * 2.0
        assert session.run(result, {x: 2.0}) == 4
        with pytest.raises(tf.errors.InternalError, match=r"assertion failed: \[x is\] \[-2\]"):
            session.run(result, {x: -2.0})


def test_on_the_host():
    """An assert outside compilation is TensorFlow's own."""

    def function(x):
        with scopes.outside_compilation_scope():
            checked = v1.Assert(x > 0.0, [x])
        with tf.control_dependencies([checked]):
            return x * 2.0

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [])
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(function, [fed])
        assert session.run(result, {fed: 1.0}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            session.run(result, {fed: -1.0})
