"""Loops and branches in programs of TensorFlow 1 run what their values need, as those of a session do."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ops import control_flow_util

v1 = tf.compat.v1
IPU = "/device:IPU:0"
X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def control_flow():
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    yield lambda version: setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", version == 2)
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


def unasked(x):
    """A moving mean, as batch normalisation has it, that nothing asks for."""
    mean = v1.get_variable("mean", [2], initializer=v1.zeros_initializer(), use_resource=True)
    mean.assign_add(0.5 * (tf.reduce_mean(x, 0) - mean))
    return x * 2.0


def waited_for(x):
    count = v1.get_variable("count", [], initializer=v1.zeros_initializer(), use_resource=True)
    with tf.control_dependencies([count.assign_add(1.0)]):
        return unasked(x)


def nested(x):
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, waited_for(x)), [0, x])[1]


def results(step, build):
    """What the loop gives, and all variables afterwards."""
    ipu.config.IPUConfig().configure_ipu_system()

    def model(x):
        with v1.variable_scope("model", reuse=v1.AUTO_REUSE):
            return [build(step, x)]

    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, X.shape)
        with ipu.scopes.ipu_scope(IPU):
            (result,) = ipu.ipu_compiler.compile(model, [x])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            value = session.run(result, {x: X})
            return value, {one.op.name: session.run(one) for one in v1.global_variables()}


def of_tensorflow(step, x):
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, step(x)), (0, x))[1]


def of_ipus(step, x):
    return ipu.loops.repeat(3, step, [x])


@pytest.mark.parametrize("build", [of_tensorflow, of_ipus], ids=["while_loop", "repeat"])
@pytest.mark.parametrize(
    ("step", "times"), [(unasked, 3), (waited_for, 3), (nested, 6)], ids=["alone", "some", "nested"]
)
def test_bodies_run_what_their_values_need(control_flow, step, times, build):
    """Stock `xla.compile` of 1.15.0 and 2.15.1 gives 0 for the mean, and counts what is waited for."""
    control_flow(1)
    value, variables = results(step, build)
    np.testing.assert_array_equal(value, X * 2**times)
    assert not np.any(variables["model/mean"])
    assert variables.get("model/count", times) == times


def test_control_flow_of_tensorflow_2_runs_all(control_flow):
    """So does stock `xla.compile`, of both versions."""
    control_flow(2)
    value, variables = results(unasked, of_tensorflow)
    np.testing.assert_array_equal(value, X * 8)
    mean = np.zeros(2)
    for factor in (1, 2, 4):
        mean += 0.5 * (factor * X.mean(0) - mean)
    np.testing.assert_allclose(variables["model/mean"], mean)


def test_gradients_pass_through(control_flow):
    control_flow(1)

    def build(step, x):
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(1.5), use_resource=True)
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, step(y) * w), (0, x), maximum_iterations=3)
        return tf.gradients(tf.reduce_sum(y), [w])[0]

    value, variables = results(waited_for, build)
    assert value == pytest.approx(3 * 8 * 1.5**2 * X.sum())  # of 8 w**3 x
    assert variables["model/count"] == 3 and not np.any(variables["model/mean"])


def branches(step, x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: step(x), lambda: x)


def cases(step, x):
    return tf.switch_case(tf.cast(x[0, 1], tf.int32), [lambda: x, lambda: step(x), lambda: x - 1.0])


@pytest.mark.parametrize("build", [branches, cases])
@pytest.mark.parametrize("step", [unasked, waited_for])
@pytest.mark.parametrize("version", [1, 2])
def test_branches_run_what_they_return_needs(control_flow, version, step, build):
    """With control flow of TensorFlow 2 stock `xla.compile` of 1.15.0 and 2.15.1 runs all."""
    control_flow(version)
    value, variables = results(step, build)
    np.testing.assert_array_equal(value, X * 2)
    np.testing.assert_allclose(variables["model/mean"], 0.5 * (version - 1) * X.mean(0))
    assert variables.get("model/count", 1) == 1


def test_operations_that_branches_return_run(control_flow):
    control_flow(1)

    def build(step, x):
        def counted():
            step(x)  # nothing asks for its mean
            return v1.get_variable("steps", [2], initializer=v1.zeros_initializer(), use_resource=True).assign_add(
                [1.0, 2.0], read_value=False
            )

        update = tf.cond(tf.reduce_sum(x) > 0, counted, tf.no_op)
        with tf.control_dependencies([update]):
            return tf.identity(x)

    value, variables = results(unasked, build)
    np.testing.assert_array_equal(value, X)
    assert variables["model/steps"].tolist() == [1, 2] and not np.any(variables["model/mean"])


def test_variables_that_are_returned_are_read_after_what_was_written(control_flow):
    control_flow(1)

    def build(step, x):
        w = v1.get_variable("w", [], initializer=v1.ones_initializer(), use_resource=True)
        chosen = tf.cond(tf.reduce_sum(x) < 0, lambda: v1.assign(w, 5.0), lambda: v1.assign(w, 2.0))
        with tf.control_dependencies([chosen]):
            _, last = tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, v1.assign_add(w, 1.0)), (0, 0.0))
        return tf.stack([chosen, last])

    value, variables = results(unasked, build)
    assert value.tolist() == [2, 5] and variables["model/w"] == 5
