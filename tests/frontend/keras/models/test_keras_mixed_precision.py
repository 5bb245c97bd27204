"""Keras' loss scales follow overflows where the configuration shows these, as stock Keras', and say so where not."""

import numpy as np
import pytest
from keras_models import keras, strategy

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

X = np.tile(np.random.RandomState(0).randn(4, 3).astype(np.float32), (4, 1))  # each mini-batch overflows at one scale


@pytest.fixture(autouse=True)
def half():
    keras.mixed_precision.set_global_policy("mixed_float16")
    yield
    keras.mixed_precision.set_global_policy(None)  # that of `floatx`, as before


def configure(ipus=1, nanoo=True):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.floating_point_behaviour.nanoo = nanoo
    config.configure_ipu_system()


def scaling(exponent, **options):
    return keras.mixed_precision.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=2.0**exponent, **(options or {"dynamic_growth_steps": 3})
    )


def trained(optimizer, y, batch_size=4, epochs=2, accumulated=1, **compiling):
    """The loss scale after each epoch, and the weights at the end."""
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones")])
    model.compile(optimizer, "mse", **compiling)
    if accumulated > 1:
        model.set_gradient_accumulation_options(
            gradient_accumulation_steps_per_replica=accumulated, gradient_accumulation_reduction_method="mean"
        )
    scales = []
    for _ in range(epochs):
        model.fit(X, y, batch_size=batch_size, shuffle=False, verbose=0)
        scales.append(float(optimizer.loss_scale))
    return scales, model.get_weights()


@pytest.mark.parametrize("accumulated", [1, 4])
def test_overflows_lower_the_scale(accumulated):
    epochs = 2 if accumulated == 1 else 6
    expected, weights = trained(scaling(18), X, 4 * accumulated, epochs)
    configure()
    with strategy().scope():
        got, found = trained(scaling(18), X, 4, epochs, accumulated, steps_per_execution=4)
    assert got == expected and expected[-1] < 2**18 and not np.array_equal(weights[0], np.ones([3, 3]))
    for one, other in zip(found, weights):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)


def test_an_overflow_in_one_replica_is_one_in_all():
    configure(2)
    y = X.copy()
    y[0:4] = y[8:12] = 1e4
    with strategy().scope():
        scales, (kernel, _) = trained(scaling(8), y)
    assert scales == [2.0**6, 2.0**4]
    np.testing.assert_array_equal(kernel, 1)


def test_replicas_skip_the_steps_that_stock_skips():
    """Gradients are summed over replicas: twice the learning rate and the scale for stock's mean over both."""

    def run(rate, scale, batch_size, **compiling):
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)])
        optimizer = keras.mixed_precision.LossScaleOptimizer(
            keras.optimizers.SGD(rate), initial_scale=scale, dynamic_growth_steps=3
        )
        model.compile(optimizer, "mse", **compiling)
        scales = []
        for _ in range(6):
            model.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0)
            scales.append(float(optimizer.loss_scale))
        return scales, model.get_weights()

    x = np.random.RandomState(0).randn(16, 3).astype(np.float32)
    y = np.sin(x[:, :2])
    x[:4] *= 1e4
    y[:4] *= 60  # overflows the loss of the first replica, and of the first mini-batch of stock
    expected, weights = run(0.02, 2.0**13, 8)
    configure(2)
    with strategy().scope():
        scales, found = run(0.01, 2.0**12, 4, steps_per_execution=1)
    assert len(set(expected)) > 1 and [2 * scale for scale in scales] == expected
    for one, other in zip(found, weights):
        np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.parametrize(
    ("nanoo", "options", "warned"), [(False, {}, True), (True, {}, False), (False, {"dynamic": False}, False)]
)
def test_a_scale_that_only_grows_is_told(caplog, nanoo, options, warned):
    configure(nanoo=nanoo)
    with strategy().scope():
        scales, _ = trained(scaling(10, **options), X, epochs=1)
    assert ("nanoo = True" in caplog.text) == warned
    assert scales == [2.0**10 if options else 2.0**11]
