"""When the factor of Keras' loss scaling moves, and which gradients it moves by."""

import json

import harness
import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_strategy
from tf_ipu_shim.keras import optimizers

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.one_version

legacy = keras2.public_module().optimizers.legacy


@pytest.fixture(autouse=True)
def fresh():
    ipu.config.reset_ipu_configuration()
    harness.configure()


def half(*values):
    return tf.constant(values, tf.float16)


def factors(gradient, captured=None, updates=9, **options):
    weight = tf.Variable(tf.ones_like(gradient))
    optimizer = optimizers.ALSOptimizer(legacy.SGD(2.0**-10), **options)
    found = []
    for _ in range(updates):
        optimizer.apply_gradients([(gradient, weight)], captured_grads=captured)
        found.append(float(optimizer.loss_scaling_factor))
    return found


def test_factor_moves():
    """As in Graphcore's tests: with a period of more than one update the first change is an update late."""
    assert factors(half(1, 1), update_frequency=4) == [1, 1, 1, 1, 2, 2, 2, 2, 4]
    assert factors(half(1, 1), update_frequency=2, updates=6) == [1, 1, 2, 2, 4, 4]
    assert factors(half(1, 1), update_frequency=1, updates=3, max_loss_scaling_factor=8) == [2, 4, 4]
    many = {"initial_loss_scaling_factor": 16, "update_frequency": 4}
    assert factors(half(10000, 1), **many) == [16, 16, 16, 16, 8, 8, 8, 8, 4]
    assert factors(half(10000, 1), histogram_bin_edge=2**14, **many)[-1] == 64
    assert factors(half(10000, 1), ratio_threshold=0.75, **many)[-1] == 64
    assert factors(tf.constant([1e9, 1e9]), **many)[-1] == 64  # float16 alone counts


def test_captured_gradients_count():
    options = {"initial_loss_scaling_factor": 16, "update_frequency": 1, "updates": 1}
    assert factors(half(1, 1), {"layer": [half(9e4)]}, **options) == [8]
    assert factors(half(9e4, 9e4), {"layer": [half(1)]}, captured_grads_only=True, **options) == [32]


@pytest.mark.parametrize(("accumulate", "lpf_alpha", "factor"), [(True, 0, 8), (False, 0, 32), (False, 0.5, 32)])
def test_gradients_counted_for_one_update_or_all(accumulate, lpf_alpha, factor):
    weight = tf.Variable(half(1, 1))
    optimizer = optimizers.ALSOptimizer(
        legacy.SGD(2.0**-10),
        16,
        update_frequency=2,
        accumulate_statistics_over_update_period=accumulate,
        lpf_alpha=lpf_alpha,
    )
    shown = []
    for gradient in (9e4, 1.0, 1.0):
        optimizer.apply_gradients([(half(gradient, 1.0), weight)])
        shown.append(optimizer.histogram.numpy().tolist())
    assert float(optimizer.loss_scaling_factor) == factor
    assert shown == ([[1, 1], [3, 1], [0, 0]] if accumulate else [[0, 0], [0, 0], [2 * lpf_alpha, 0]])


@pytest.mark.parametrize("accumulate", [True, False])
def test_captured_gradients_of_all_mini_batches(accumulate):
    """An update has seen those of each of its mini-batches, and the next one begins anew."""
    weight = tf.Variable(half(1, 1))
    als = optimizers.ALSOptimizer(
        legacy.SGD(0.0), 16, update_frequency=1, accumulate_statistics_over_update_period=accumulate
    )
    optimizer, found = optimizers.ALSGradientAccumulationOptimizer(als, 2), []

    @tf.function(jit_compile=True, autograph=False)
    def step(captured):
        def body(captured):
            optimizer.apply_gradients([(half(1, 1), weight)], captured_grads={"layer": captured[0]})
            return tf.reverse(captured, [0])

        return ipu.loops.repeat(2, body, [captured])

    with tf.device(harness.IPU):
        for captured in (half(9e4, 1), half(1, 1), half(1, 9e4)):
            step(captured)
            found.append(float(optimizer.loss_scaling_factor))
    assert found == [8, 16, 8]


@pytest.mark.parametrize("large", [False, True])
def test_fit_counts_captured_gradients_of_an_accumulation(large):
    keras = keras2.public_module()
    with ipu_strategy.IPUStrategyV1().scope():
        layer = keras.layers.Dense(2, kernel_initializer="ones", dtype="float16")
        model = keras.Sequential([keras.Input(2, dtype="float16"), keras.ipu.layers.CaptureUpstreamGradients(layer)])
        model.set_gradient_accumulation_options(4)
        optimizer = optimizers.ALSOptimizer(legacy.SGD(0.0), 16, update_frequency=1, captured_grads_only=True)
        model.compile(optimizer, lambda y, p: tf.reduce_sum(p * y), steps_per_execution=4)
        targets = np.ones((8, 2), np.float16)
        targets[3] = 10000 if large else 1  # of the second of four mini-batches: its gradient is 16 times as much
        model.fit(np.zeros((8, 2), np.float16), targets, batch_size=2, shuffle=False, verbose=0)
        assert float(optimizer.loss_scaling_factor) == (8 if large else 32)


@pytest.mark.parametrize("word, meant", [("THREESTATE_ON", True), ("THREESTATE_OFF", False), ("MAYBE", None)])
def test_accumulation_takes_the_driver_s_words(word, meant):
    def make():
        return optimizers.GradientAccumulationOptimizer(legacy.SGD(0.1), 2, word, word)

    if meant is None:
        with pytest.raises(TypeError, match="offload_weight_update_variables must be True or False, not 'MAYBE'"):
            make()
        return
    optimizer = make()
    config = optimizer.get_config()
    assert config["replicated_optimizer_state_sharding"] == word
    assert optimizers.GradientAccumulationOptimizer.from_config(dict(config)).get_config() == config
    assert json.loads(optimizer._accumulation._options) == [meant, meant]
    with pytest.raises(AttributeError, match="can't set attribute"):
        optimizer.weights = 1
