"""IPUStrategyV1: placement, `run` and its checks, against the same functions run by TensorFlow on the CPU."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_strategy
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.ipu.scopes import ipu_scope

from tf_ipu_shim import plugin
from tf_ipu_shim.frontend.strategies import ipu_strategy as building
from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1


@pytest.fixture
def strategy():
    return ipu_strategy.IPUStrategyV1()


def device_type(tensor):
    return tf.DeviceSpec.from_string(tensor.device).device_type


def test_variables_and_ops_of_the_scope_are_on_the_ipu(strategy):
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy
        assert tf.distribute.in_cross_replica_context()
        variable = tf.Variable(lambda: tf.ones([2, 3]))
        product = tf.matmul(variable, tf.ones([3, 1]))
    assert device_type(variable) == device_type(product) == "IPU"
    np.testing.assert_array_equal(product, [[3.0], [3.0]])
    assert not tf.distribute.has_strategy()
    extended = strategy.extended
    assert extended.worker_devices == extended.parameter_devices == ("/device:IPU:0",)
    assert extended.non_slot_devices([variable]) == ("/device:IPU:0",)
    assert extended.value_container(product) is product
    assert strategy.num_replicas_in_sync == 1 and strategy.supports_loss_scaling


def test_a_strategy_of_a_device_that_nobody_configured(strategy):
    second = ipu_strategy.IPUStrategyV1("/device:IPU:1")
    with second.scope():
        variable = tf.Variable(2.0)
    doubled = second.run(tf.function(lambda: variable * 2.0))
    assert variable.device.endswith("/device:IPU:1") and doubled.device.endswith("/device:IPU:1") and doubled == 4.0


def test_a_strategy_of_a_device_beside_those_that_are_configured(strategy):
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    result = ipu_strategy.IPUStrategyV1("/device:IPU:1").run(tf.function(lambda: tf.constant(1.0) + 2.0))
    assert result.device.endswith("/device:IPU:1") and result == 3.0
    assert [device.num_ipus for device in devices.active()] == [2, 1]


def test_scopes_of_missing_devices_are_refused_for_eager_ops(strategy):
    for configure in (False, True):
        if configure:
            config = IPUConfig()
            config.auto_select_ipus = 2
            config.configure_ipu_system()
        refused = pytest.raises(tf.errors.InvalidArgumentError, match="There is no TensorFlow device /device:IPU:1; ")
        with refused, ipu_scope("/device:IPU:1"):
            pass


@pytest.mark.parametrize("jit_compile", [True, None])
def test_run_gives_what_the_function_gives_on_the_cpu(strategy, jit_compile):
    random = np.random.RandomState(1)
    matrix, x = random.rand(3, 4).astype("f"), random.rand(2, 3).astype("f")

    def function(variable, x, scale=1.0, square=False):
        y = tf.tanh(tf.matmul(x, variable)) * scale
        variable.assign_add(tf.ones_like(variable))
        return {"y": y**2 if square else y, "sums": [tf.reduce_sum(variable)]}

    on_cpu = tf.Variable(matrix)
    with strategy.scope():
        on_ipu = tf.Variable(matrix)
    compiled = tf.function(lambda *args, **kwargs: function(on_ipu, *args, **kwargs), jit_compile=jit_compile)
    for kwargs in ({}, {"scale": 3.0}, {"scale": tf.constant(2.0), "square": True}):
        expected = function(on_cpu, x, **kwargs)
        actual = strategy.run(compiled, args=[tf.constant(x)], kwargs=kwargs)
        tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), actual, expected)
        assert device_type(actual["y"]) == "IPU"
    np.testing.assert_allclose(on_ipu, on_cpu)


def test_functions_are_traced_once_a_signature(strategy):
    traced = []

    @tf.function
    def function(x, flag=True):
        traced.append((x.shape.rank, flag))
        return x + 1 if flag else x - 1

    for value in (1.0, 2.0):
        assert float(strategy.run(function, args=[tf.constant(value)])) == value + 1
    assert float(strategy.run(function, args=[tf.constant(1.0)], kwargs={"flag": False})) == 0
    np.testing.assert_array_equal(strategy.run(function, args=[tf.constant([1.0])]), [2.0])
    assert traced == [(0, True), (0, False), (1, True)]


def test_variables_may_be_made_in_the_first_call(strategy):
    class Model(tf.Module):
        def __init__(self):
            self.weight = None

        @tf.function
        def __call__(self, x):
            if self.weight is None:
                self.weight = tf.Variable(tf.fill([2, 2], 3.0))
            self.weight.assign_add(x)
            return tf.matmul(x, self.weight)

    model = Model()
    np.testing.assert_array_equal(strategy.run(model.__call__, args=[tf.ones([2, 2])]), np.full([2, 2], 8.0))
    np.testing.assert_array_equal(strategy.run(model.__call__, args=[tf.ones([2, 2])]), np.full([2, 2], 10.0))
    np.testing.assert_array_equal(strategy.run(model, args=[tf.ones([2, 2])]), np.full([2, 2], 12.0))
    assert device_type(model.weight) == "IPU"


def test_what_run_refuses(strategy):
    with pytest.raises(ValueError, match=r"IPUStrategyV1.run\(fn, \.\.\.\) does not support eager execution"):
        strategy.run(lambda x: x, args=[1.0])
    function = tf.function(lambda x: x + 1)
    with pytest.raises(TypeError, match="Unsupported data type for input: float64"):
        strategy.run(function, args=[np.float64(1.0)])
    with pytest.raises(TypeError, match="Unsupported data type for output: float64"):
        strategy.run(tf.function(lambda x: tf.cast(x, tf.float64)), args=[1.0])


def test_a_variable_from_outside_the_scope_is_not_updated(strategy):
    optimizer, variable = tf.keras.optimizers.legacy.SGD(0.5), tf.Variable(3.0, name="bias")

    @tf.function
    def step():
        optimizer.apply_gradients([(tf.constant(1.0), variable)])

    with pytest.raises(
        ValueError, match="Variable 'bias:0' was made outside the scope of the IPUStrategy that updates"
    ):
        strategy.run(step)
    assert float(variable) == 3
    with strategy.scope():
        variable = tf.Variable(3.0)
        optimizer = tf.keras.optimizers.legacy.SGD(0.5)
    strategy.run(tf.function(step.python_function))
    assert float(variable) == 2.5


def test_experimental_run_v2_of_old_releases(strategy, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    function = tf.function(lambda x, y: x * y)
    assert float(strategy.experimental_run_v2(function, args=[3.0], kwargs={"y": tf.constant(2.0)})) == 6
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.2")
    with pytest.raises(RuntimeError, match="`experimental_run_v2` has been deleted. Use `run` instead."):
        strategy.experimental_run_v2(function, args=[1.0, 2.0])
    monkeypatch.delenv("TF_IPU_SHIM_SDK")
    building._warn_old_name.cache_clear()
    with mock.patch.object(building.tf_logging, "warning") as warning:
        for _ in range(2):
            assert float(strategy.experimental_run_v2(function, args=[3.0, 3.0])) == 9
    assert [call.args for call in warning.call_args_list] == [
        ("`experimental_run_v2` is of SDK 2.1 and older; it runs as `run` does.",)
    ]
    with pytest.raises(ValueError, match=r"IPUStrategy.experimental_run_v2\(fn, \.\.\.\) does not support eager"):
        strategy.experimental_run_v2(lambda x: x, args=[1.0])


def test_a_step_inside_a_function(strategy):
    with strategy.scope():
        weight = tf.Variable(2.0)

    @tf.function
    def outer(x):
        y = strategy.run(lambda x: x * weight, args=(x,))
        return strategy.reduce("SUM", y, axis=None), strategy.reduce(tf.distribute.ReduceOp.MEAN, y, axis=0)

    summed, mean = outer(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(summed, [2.0, 4.0])
    assert float(mean) == 3.0


@pytest.mark.parametrize("outer_jit_compile", [True, None])
def test_functions_run_inside_functions_are_programs(strategy, outer_jit_compile):
    with strategy.scope():
        weight = tf.Variable(2.0)

    @tf.function
    def inner(x):
        weight.assign_add(x)
        return x * weight

    @tf.function(jit_compile=outer_jit_compile)
    def outer(x, count):
        total = strategy.run(inner, args=(x,))
        for _ in tf.range(count):
            total += strategy.run(inner, args=(x,))
        return total

    with strategy.scope():
        before = plugin.load().programs_lowered(0)
        assert float(outer(tf.constant(1.0), 3)) == 3 + 4 + 5 + 6
        lowered = plugin.load().programs_lowered(0) - before
    assert float(weight) == 6 and lowered >= 1
    with pytest.raises(RuntimeError, match="cross-replica context"):
        strategy.run(outer, args=[tf.constant(0.0), 1])


def test_a_session_s_graph(strategy):
    with tf.Graph().as_default(), strategy.scope():
        weight = v1.get_variable("weight", [2], initializer=v1.ones_initializer())

        def step(x):
            loss = tf.reduce_sum(weight * weight * x)
            update = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
            with tf.control_dependencies([update]):
                return tf.identity(loss)

        loss = strategy.run(step, args=[tf.constant([1.0, 2.0])])
        total = strategy.run(tf.function(lambda x: tf.reduce_sum(x * weight)), args=[tf.constant([1.0, 10.0])])
        assert weight.device == loss.device == "/device:IPU:0"
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(total) == 11
            assert session.run(loss) == 3
            np.testing.assert_array_equal(session.run(weight), [0.0, -1.0])


def test_a_strategy_of_another_device(ipus):
    ipus([1, 1])
    second = ipu_strategy.IPUStrategyV1("/device:IPU:1")
    with second.scope():
        weight = tf.Variable(3.0)
    result = second.run(tf.function(lambda x: x * weight), args=[2.0])
    assert float(result) == 6.0
    assert weight.device.endswith("/device:IPU:1") and result.device.endswith("/device:IPU:1")


def test_scopes_of_another_device_in_a_program_are_told_of(ipus, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    ipus([1, 1])

    @tf.function(jit_compile=True)
    def scoped(x, device):
        with ipu_scope(device):
            return x * 3.0

    first = ipu_strategy.IPUStrategyV1("/device:IPU:0")
    assert float(first.run(scoped, args=[tf.constant(2.0), "/device:IPU:0"])) == 6.0
    assert "has no effect" not in capfd.readouterr().err
    result = first.run(scoped, args=[tf.constant(2.0), "/device:IPU:1"])
    assert float(result) == 6.0 and result.device.endswith("/device:IPU:0")
    printed = capfd.readouterr().err
    assert "/device:IPU:1 has no effect in scoped, all of which is compiled for /device:IPU:0: mul" in printed
    assert "test_strategy.py" in printed and "ipu.scopes.ipu_shard" in printed
    assert printed.count("has no effect") == 1


@pytest.mark.parametrize(("device", "error"), [("IPU:0", ValueError), (0, TypeError)])
def test_a_device_that_has_no_name(device, error):
    """It is refused before the scope is entered, which would not be left again."""
    with pytest.raises(error, match="IPUStrategyV1.*'/device:IPU:0'"):
        ipu_strategy.IPUStrategyV1(device).scope().__enter__()
    with pytest.raises(error, match="cpu_device"):
        ipu_strategy.IPUStrategyV1(cpu_device=device)
    assert not tf.distribute.has_strategy()


def test_reduce(strategy):
    values = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_array_equal(strategy.reduce("SUM", values, axis=None), values)
    np.testing.assert_array_equal(strategy.reduce("SUM", values, axis=0), [4.0, 8.0])
    np.testing.assert_array_equal(strategy.reduce("MEAN", values, axis=0), [2.0, 4.0])
    with pytest.raises(ValueError, match="MAX"):
        strategy.reduce("MAX", values, axis=None)


@pytest.mark.parametrize("step_in_function", [True, False])
def test_training_steps_give_the_cpu_s_weights(strategy, step_in_function):
    random = np.random.RandomState(2)
    x, y = random.rand(6, 4).astype("f"), random.rand(6, 2).astype("f")
    first, second = random.rand(4, 5).astype("f"), random.rand(5, 2).astype("f")

    def made():
        return [tf.Variable(first), tf.Variable(second)], tf.Variable([[0.0] * 5] * 4)

    def step(weights, momentum, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, weights[0])), weights[1]) - y))
        gradients = tape.gradient(loss, weights)
        momentum.assign(0.9 * momentum + gradients[0])
        weights[0].assign_sub(0.1 * momentum)
        weights[1].assign_sub(0.1 * gradients[1])
        return loss

    expected_weights, momentum = made()
    expected = [float(step(expected_weights, momentum, x, y)) for _ in range(5)]

    with strategy.scope():
        weights, momentum = made()

    @tf.function
    def function(count, x, y):
        losses = tf.TensorArray(tf.float32, size=count, element_shape=[])
        for i in tf.range(count):
            losses = losses.write(i, step(weights, momentum, x, y))
        return losses.stack()

    if step_in_function:
        losses = strategy.run(function, args=[5, x, y])
    else:
        losses = tf.concat([strategy.run(function, args=[1, x, y]) for _ in range(5)], 0)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for one, other in zip(weights, expected_weights):
        np.testing.assert_allclose(one, other, rtol=1e-5)
