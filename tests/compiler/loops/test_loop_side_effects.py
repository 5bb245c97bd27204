"""Loops and branches in programs of TensorFlow 1 run what their values need, as those of a session do.

All of a compiled function itself runs, and all of a branch of `tf.switch_case`, as in stock `xla.compile`.
"""

import control_flow_effects as effects
import control_flow_gradients as gradients
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ops import control_flow_util

pytestmark = pytest.mark.one_version

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


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("bound", [None, 5])
def test_conditions_that_write(control_flow, version, bound):
    """As in a session; stock `xla.compile` refuses them."""
    control_flow(version)

    def build(step, x):
        asked = v1.get_variable("asked", [], initializer=v1.zeros_initializer(), use_resource=True)

        def goes_on(i, y):
            with tf.control_dependencies([asked.assign_add(1.0)]):
                return tf.logical_and(i < 10, asked.read_value() + y[0, 1] < 5.0)

        return tf.while_loop(goes_on, lambda i, y: (i + 1, y + 1.0), (0, x), maximum_iterations=bound)[1]

    value, variables = results(unasked, build)
    np.testing.assert_array_equal(value, X + 2.0)  # 1 + 1, 2 + 2 and 3 + 3 for asked + y
    assert variables == {"model/asked": 3.0}


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
    """With control flow of TensorFlow 2 stock `xla.compile` of 1.15.0 and 2.15.1 runs all; so does `switch_case`."""
    control_flow(version)
    value, variables = results(step, build)
    np.testing.assert_array_equal(value, X * 2)
    np.testing.assert_allclose(variables["model/mean"], 0.5 * (version == 2 or build is cases) * X.mean(0))
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


def test_returned_variables_are_read_after_the_writes(control_flow):
    control_flow(1)

    def build(step, x):
        w = v1.get_variable("w", [], initializer=v1.ones_initializer(), use_resource=True)
        chosen = tf.cond(tf.reduce_sum(x) < 0, lambda: v1.assign(w, 5.0), lambda: v1.assign(w, 2.0))
        with tf.control_dependencies([chosen]):
            _, last = tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, v1.assign_add(w, 1.0)), (0, 0.0))
        return tf.stack([chosen, last])

    value, variables = results(unasked, build)
    assert value.tolist() == [2, 5] and variables["model/w"] == 5


def hits_of(net):
    """What adds to the variables of a net: they are made first, as functions by `Defun` want it."""
    with v1.variable_scope(net.__name__, use_resource=True):
        variables = {name: v1.get_variable(name, [], initializer=v1.zeros_initializer()) for name in "abc"}
    return lambda name: variables[name].assign_add(1.0)


def test_side_effects_that_nothing_needs(control_flow):
    """`effects.COUNTS` is what stock `tf.xla.experimental.compile` of TensorFlow 2.15.1 and 2.21.0 does."""
    control_flow(1)
    ipu.config.IPUConfig().configure_ipu_system()

    with tf.Graph().as_default(), v1.Session() as session:
        chosen, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [])
        with ipu.scopes.ipu_scope(IPU):
            hits = {net: hits_of(net) for net in effects.NETS}
            results = ipu.ipu_compiler.compile(
                lambda chosen, x: [net(chosen, x, hits[net]) for net in effects.NETS], [chosen, x]
            )
        for place, flag in enumerate((True, False)):
            session.run(v1.global_variables_initializer())
            session.run(results, {chosen: flag, x: 1.0})
            values = session.run({one.op.name: one for one in v1.global_variables()})
            wanted = {
                f"{net.__name__}/{name}": n for net in effects.NETS for name, n in effects.COUNTS[net][place].items()
            }
            assert {name: value for name, value in values.items() if value} == wanted, flag


def test_a_check_that_nothing_waits_for_ends_the_run(control_flow):
    control_flow(1)

    def build(step, x):
        tf.debugging.assert_less(x, 3.0)
        return x

    with pytest.raises(tf.errors.InternalError, match="assertion failed: .*x < y"):
        results(unasked, build)


def test_messages_that_nothing_waits_for_are_refused(control_flow):
    """As those that something waits for: they are no op of an IPU."""
    control_flow(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="PrintV2.*(.|\n)*outside_compilation_scope"):
        results(unasked, lambda step, x: (tf.print(x), x)[1])


def test_elements_that_nothing_waits_for_are_sent(control_flow):
    control_flow(1)
    ipu.config.IPUConfig().configure_ipu_system()
    always, sometimes = (ipu.ipu_outfeed_queue.IPUOutfeedQueue() for _ in range(2))

    def model(x):
        always.enqueue(x)
        tf.cond(x > 1.0, lambda: sometimes.enqueue(x * 10.0), tf.no_op)
        return x

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        with ipu.scopes.ipu_scope(IPU):
            (result,) = ipu.ipu_compiler.compile(model, [x])
        rows = always.dequeue(), sometimes.dequeue()
        for value in (1.0, 2.0):
            session.run(result, {x: value})
        assert [row.tolist() for row in session.run(rows)] == [[1, 2], [20]]


# The deepest nets have what those within them do, and run on every TensorFlow.
MARKS = {
    **dict.fromkeys(("while_in_switch_case_in_while", "while_in_cond_in_while", "second_order"), ()),
    **dict.fromkeys(("while_in_while", "while_in_cond", "cond_in_while", "cond_in_switch_case"), pytest.mark.slow),
}


@pytest.mark.ci_cases(8)
@pytest.mark.parametrize(
    "net",
    [pytest.param(net, marks=MARKS.get(net.__name__, pytest.mark.one_version)) for net in gradients.NETS],
    ids=lambda net: net.__name__,
)
def test_training_passes_through(control_flow, net):
    """As in a session without IPUs."""
    control_flow(1)
    ipu.config.IPUConfig().configure_ipu_system()

    def step(x):
        loss = tf.reduce_sum(net(x))
        return [loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)]

    def trained(build):
        with tf.Graph().as_default(), v1.Session() as session:
            with tf.device("/cpu:0"):
                x = v1.placeholder(tf.float32, [3])
            result = build(x)
            session.run(v1.global_variables_initializer())
            losses = [session.run(result, {x: [1.0, 2.0, 0.5 * sign]})[0] for sign in (-1.0, 1.0)]
            losses.append(session.run(result, {x: [-1.0, -2.0, 0.5]})[0])
            return losses, {one.op.name: session.run(one) for one in v1.global_variables()}

    def on_an_ipu(x):
        with ipu.scopes.ipu_scope(IPU):
            return ipu.ipu_compiler.compile(step, [x])

    (wanted, weights), (losses, trained_weights) = trained(step), trained(on_an_ipu)
    np.testing.assert_allclose(losses, wanted, rtol=1e-4, atol=1e-5)
    assert trained_weights.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_allclose(trained_weights[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
