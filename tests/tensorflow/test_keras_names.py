"""Names of Keras 2.6 that scripts of the time use, and mixed precision in the scope of a strategy."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, assert_same, compiled, keras, sequential, strategy, trained

from tf_ipu_shim import errors

pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")  # Keras' own seeds


def test_internal_modules_that_were_public():
    assert keras.losses.losses_utils.ReductionV2.SUM == "sum"
    assert keras.utils.np_utils.to_categorical([1], 3).tolist() == [[0.0, 1.0, 0.0]]
    assert tf.keras.utils.generic_utils.to_snake_case("OneTwo") == "one_two"
    for module in (keras.losses, tf.keras.layers):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense
    from tensorflow.python.keras import utils

    assert callable(utils.get_file)


def test_mixed_precision_with_loss_scaling(ipus):
    ipus(1)

    def trained(**options):
        policy = keras.mixed_precision.Policy("mixed_float16")
        keras.mixed_precision.set_global_policy(policy)
        try:
            model = sequential()
        finally:
            keras.mixed_precision.set_global_policy("float32")
        optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), dynamic=False, initial_scale=8)
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)
        history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
        assert {weight.dtype for weight in model.weights} == {tf.float32}
        return history["loss"], model.get_weights()

    losses, weights = trained()
    with strategy().scope():
        got, moved = trained(steps_per_execution=8)
    np.testing.assert_allclose(got, losses, rtol=2e-2)
    for one, other in zip(moved, weights):
        np.testing.assert_allclose(one, other, atol=2e-2)


@pytest.mark.parametrize("name", ["GradientDescent", "Momentum", "Adam"])
def test_optimizers_of_tensorflow_1(ipus, name):
    ipus(1)

    def make():
        further = [0.9] if name == "Momentum" else []
        return getattr(tf.compat.v1.train, f"{name}Optimizer")(0.05, *further)

    expected = trained(compiled(sequential(), make))
    with strategy().scope():
        assert_same(trained(compiled(sequential(), make, steps_per_execution=8)), expected)


def test_a_layer_takes_its_name_for_trainable():
    """`super().__init__(name)` is a mistake that Keras 2.6 lets pass: the first argument is `trainable`."""

    class Scaled(keras.layers.Layer):
        def __init__(self, name=None):
            super().__init__(name)
            self.scale = self.add_weight("scale", [2], initializer="ones")

        def call(self, x):
            return x * self.scale

    for name, trained_ones in ((None, 0), ("own", 1)):
        layer = Scaled(name)
        assert layer(tf.ones([3, 2])).shape == (3, 2)
        assert len(layer.trainable_weights) == trained_ones and layer.name.startswith("scaled")
    assert keras.layers.Dense(2, trainable=False).get_config()["trainable"] is False
    assert keras.layers.Layer().trainable is True


def test_experimental_mixed_precision():
    """As in TensorFlow 2.1 to 2.6, under the names by which scripts import it."""
    from tensorflow.keras.mixed_precision import experimental
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer, Policy

    assert experimental is tf.keras.mixed_precision.experimental and experimental.Policy is Policy
    policy = Policy("mixed_float16", loss_scale="dynamic")
    assert (policy.compute_dtype, policy.variable_dtype) == ("float16", "float32")
    try:
        experimental.set_policy("mixed_float16")
        assert experimental.global_policy().name == keras.layers.Dense(1).dtype_policy.name == "mixed_float16"
    finally:
        experimental.set_policy("float32")
    with pytest.raises(errors.UnsupportedError, match="LossScaleOptimizer"):
        Policy("mixed_float16", loss_scale=128)
    scales = (128, "dynamic", tf.compat.v1.mixed_precision.FixedLossScale(16))
    made = [LossScaleOptimizer(keras.optimizers.SGD(0.1), scale) for scale in scales]
    assert [(one.dynamic, float(one.loss_scale)) for one in made] == [(False, 128), (True, 2**15), (False, 16)]


@pytest.mark.parametrize(
    "penalty", [tf.constant(0.5), tf.Variable(0.5), np.float32(0.5)], ids=["tensor", "variable", "numpy"]
)
def test_penalties_may_be_tensors(penalty):
    layer = keras.layers.Dense(
        1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L1L2(penalty, penalty)
    )
    layer(np.ones([1, 2], "f"))
    assert float(layer.losses[0]) == 0.5 * 2 + 0.5 * 2
    with pytest.raises(ValueError, match="not a valid regularization penalty"):
        keras.regularizers.L1(tf.constant([0.5, 0.5]))


def test_batch_normalisation_of_halves_has_parameters_of_halves(ipus):
    """Graphcore's test of the fused layer finds no conversions of types on the IPU."""
    ipus(1)
    x = np.random.RandomState(0).rand(4, 3, 3, 2).astype("e")
    on_ipus = strategy()
    with on_ipus.scope():
        layer = keras.layers.BatchNormalization(dtype="float16", momentum=0.5)
        step = tf.function(lambda: layer(x, training=True), jit_compile=True)
        got = on_ipus.run(step).numpy()
    assert got.dtype == np.float16 and {weight.dtype for weight in layer.weights} == {tf.float16}
    mean, variance = (f(x.astype("f"), axis=(0, 1, 2)) for f in (np.mean, np.var))
    np.testing.assert_allclose(got, (x - mean) / np.sqrt(variance + 1e-3), 1e-2, 5e-3)
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.5 * mean, 1e-2)
    assert {w.dtype for w in of_mixed_precision().weights} == {tf.float32}


def of_mixed_precision():
    layer = keras.layers.BatchNormalization(dtype="mixed_float16")
    layer(tf.zeros([1, 2, 2, 2], tf.float16))
    return layer


def test_objects_of_scripts_are_not_asked_for_their_class():
    """`import torch` brings one that warns when it is asked."""
    from tf_ipu_shim.names import one_keras

    class Asked:
        @property
        def __class__(self):
            raise AssertionError("asked")

    one_keras.exchange(one_keras._counterpart, "nothing")
    value = Asked()
    assert one_keras._counterpart(value) is value
