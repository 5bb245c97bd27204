"""Names of Keras 2.6 that scripts of the time use, and mixed precision in the scope of a strategy."""

import contextlib
import importlib

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, assert_same, compiled, keras, sequential, strategy, trained
from slow_cases import slowly

from tf_ipu_shim import errors, keras2
from tf_ipu_shim.api.addons.keras import layers as ipu_layers

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]


def accumulating(pipelined):
    """A model that accumulates the gradients of four mini-batches, with or without pipeline stages."""
    model = sequential()
    options = {"gradient_accumulation_steps_per_replica": 4, "gradient_accumulation_reduction_method": "mean"}
    if pipelined:
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        model.set_pipelining_options(**options)
    else:
        model.set_gradient_accumulation_options(**options)
    return model


def test_internal_modules_that_were_public():
    assert keras.losses.losses_utils.ReductionV2.SUM == "sum"
    assert keras.utils.np_utils.to_categorical([1], 3).tolist() == [[0.0, 1.0, 0.0]]
    assert tf.keras.utils.generic_utils.to_snake_case("OneTwo") == "one_two"
    for module in (keras.losses, tf.keras.layers):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense
    from tensorflow.python.keras import utils

    assert callable(utils.get_file)
    assert tf.keras.ipu.__ipu__built__ == keras.ipu.__ipu__built__ == "1"


@pytest.mark.parametrize("root", ["keras", "tensorflow.python.keras"])
@pytest.mark.parametrize(
    "module, name, now",
    [
        ("initializers.initializers_v2", "GlorotUniform", "initializers.initializers"),
        ("layers.convolutional", "Conv", "layers.convolutional.base_conv"),
        ("layers.pooling", "Pooling2D", "layers.pooling.base_pooling2d"),
        ("layers.pooling", "MaxPooling2D", "layers.pooling.max_pooling2d"),
        ("layers.dense_attention", "BaseDenseAttention", "layers.attention.base_dense_attention"),
        ("engine.base_layer", "InputSpec", "engine.input_spec"),
        ("engine.compile_utils", "apply_mask", "utils.losses_utils"),
        ("preprocessing.timeseries", "timeseries_dataset_from_array", "utils.timeseries_dataset"),
    ],
)
def test_names_of_modules_that_were_split(root, module, name, now):
    assert getattr(importlib.import_module(f"{root}.{module}"), name) is getattr(keras2.module(now), name)


def test_names_that_keras_keeps_to_itself_now():
    import keras as package  # the name scripts use, which is `tf_keras` on TensorFlow 2.21

    assert package.engine.base_layer.Layer is keras.layers.Layer
    assert package.optimizer_v2.optimizer_v2.OptimizerV2 is keras.optimizers.legacy.Optimizer
    assert package.saving.hdf5_format.load_weights_from_hdf5_group is not None
    assert package.backend._preprocess_padding("same") == "SAME"
    assert package.models._make_new_nodes is keras2.module("models.cloning")._make_new_nodes
    sizes = importlib.import_module("keras.applications.imagenet_utils").correct_pad(keras.Input((8, 8, 3)), 3)
    assert sizes == ((0, 1), (0, 1))  # an even size has no row before it
    recurrent = importlib.import_module("keras.layers.recurrent")
    assert recurrent._is_multiple_state([1, 2]) and not recurrent._is_multiple_state(1)
    with pytest.raises(AttributeError, match="module 'keras' has no attribute 'nonsense'"):
        _ = package.nonsense


def test_mixed_precision_with_loss_scaling(ipus):
    ipus(1)

    def trained(**options):
        policy = keras.mixed_precision.Policy("mixed_float16")
        keras.mixed_precision.set_global_policy(policy)
        try:
            model = sequential()
        finally:
            keras.mixed_precision.set_global_policy(None)  # that of `floatx`, as before
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


@pytest.mark.parametrize("pipelined", [slowly(False), True])
def test_a_subclass_of_the_loss_scaling_optimizer(ipus, pipelined):
    """Scripts unscale in the wrapped optimizer instead, so that sums of scaled halves are kept."""
    ipus(2 if pipelined else 1)

    class Scaling(keras.mixed_precision.LossScaleOptimizer):
        def __init__(self, scale, optimizer):
            super().__init__(optimizer, dynamic=False, initial_scale=scale)
            self.inner_optimizer.gradient_transformers.insert(
                0, lambda pairs: [(grad / scale, variable) for grad, variable in pairs]
            )

        def get_unscaled_gradients(self, grads):
            return grads

    def make():
        return Scaling(scale=1024.0, optimizer=keras.optimizers.SGD(0.1))

    assert isinstance(make(), keras.optimizers.Optimizer) and float(make().loss_scale) == 1024
    assert isinstance(make(), keras.mixed_precision.LossScaleOptimizer)
    expected = trained(compiled(sequential()), batch=32)
    with strategy().scope():
        model = accumulating(pipelined)
        assert_same(trained(compiled(model, make, steps_per_execution=8)), expected)


@pytest.mark.parametrize("name", [slowly("GradientDescent"), slowly("Momentum"), "Adam"])
def test_optimizers_of_tensorflow_1(ipus, name):
    ipus(1)

    def make():
        further = [0.9] if name == "Momentum" else []
        return getattr(tf.compat.v1.train, f"{name}Optimizer")(0.05, *further)

    expected = trained(compiled(sequential(), make))
    with strategy().scope():
        assert_same(trained(compiled(sequential(), make, steps_per_execution=8)), expected)


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_tensorflow_1_optimizer_that_computes_its_gradients(ipus, pipelined):
    """It is asked where gradients are accumulated, as in Graphcore's Keras: here it doubles them."""

    class Doubling(tf.compat.v1.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, var_list=None, **kwargs):
            pairs = super().compute_gradients(loss, var_list, **kwargs)
            return [(2.0 * gradient, variable) for gradient, variable in pairs]

    ipus(2 if pipelined else 1)
    expected = trained(compiled(sequential(), lambda: keras.optimizers.SGD(0.1)), batch=32)
    with strategy().scope():
        model = accumulating(pipelined)
        assert_same(trained(compiled(model, lambda: Doubling(0.05), steps_per_execution=8)), expected)


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
        assert experimental.get_layer_policy(keras.layers.Dense(1)).compute_dtype == "float16"
    finally:
        experimental.set_policy(None)
    with pytest.raises(ValueError, match="expected a Keras layer"):
        experimental.get_layer_policy("dense")
    with pytest.raises(errors.UnsupportedError, match="LossScaleOptimizer"):
        Policy("mixed_float16", loss_scale=128)
    scales = (128, "dynamic", tf.compat.v1.mixed_precision.FixedLossScale(16))
    made = [LossScaleOptimizer(keras.optimizers.SGD(0.1), scale) for scale in scales]
    assert [(one.dynamic, float(one.loss_scale)) for one in made] == [(False, 128), (True, 2**15), (False, 16)]
    assert all(isinstance(one, LossScaleOptimizer) for one in made) and issubclass(
        LossScaleOptimizer, keras.optimizers.Optimizer
    )
    assert isinstance(policy, Policy) and not isinstance(policy, LossScaleOptimizer)
    assert isinstance(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1)), LossScaleOptimizer)
    with pytest.raises(errors.UnsupportedError, match="multiplier is 2"):
        LossScaleOptimizer(keras.optimizers.SGD(0.1), tf.mixed_precision.experimental.DynamicLossScale(multiplier=3.0))

    class Halved(LossScaleOptimizer):
        def __init__(self, optimizer, loss_scale):
            super().__init__(optimizer, loss_scale)

        def get_unscaled_gradients(self, grads):
            return [0.5 * grad for grad in super().get_unscaled_gradients(grads)]

    for scale in (64, tf.mixed_precision.experimental.FixedLossScale(64)):
        optimizer = Halved(keras.optimizers.SGD(0.1), scale)
        assert isinstance(optimizer, Halved) and isinstance(optimizer, LossScaleOptimizer)
        assert not isinstance(made[0], Halved) and float(optimizer.loss_scale) == 64
        assert float(optimizer.get_scaled_loss(tf.constant(2.0))) == 128
        assert float(optimizer.get_unscaled_gradients([tf.constant(128.0)])[0]) == 1.0

    class Named(Policy):
        pass

    assert Named("float16").compute_dtype == "float16" and isinstance(Named("float16"), Policy)
    assert not isinstance(policy, Named)


def test_loss_scales_where_tensorflow_had_them():
    version_1 = tf.compat.v1.train.experimental
    assert tf.mixed_precision.experimental.FixedLossScale is version_1.FixedLossScale
    assert tf.train.experimental.DynamicLossScale is tf.mixed_precision.experimental.DynamicLossScale
    rewrite = tf.train.experimental.enable_mixed_precision_graph_rewrite
    assert rewrite is version_1.enable_mixed_precision_graph_rewrite


class CountedInputs(keras.layers.Layer):
    """Counts its calls as layers of TensorFlow 2.1 do."""

    def build(self, shape):
        self.calls = self.add_weight("calls", shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        self.add_update(self.calls.assign_add(1.0), inputs=x)
        self.add_update([lambda: self.calls.assign_add(2.0)], True)
        self.add_loss(tf.reduce_sum(x), inputs=x)
        return x


def test_methods_of_layers_that_keras_has_no_more(ipus):
    ipus(1)
    with strategy().scope():
        layer = CountedInputs(input_shape=(2,))
        model = keras.Sequential([layer])
        model.compile("sgd", "mse", steps_per_execution=3)
        model.fit(np.ones((6, 2), np.float32), np.ones((6, 2), np.float32), batch_size=2, verbose=0)
        assert layer.calls.numpy() == 3 * (1 + 2)
    layer(tf.constant([[1.0, 2.0]]))
    assert [float(loss) for loss in layer.get_losses_for(None)] == [3.0]
    with pytest.warns(UserWarning, match="updates"):
        assert layer.get_updates_for(None) == []
    with tf.Graph().as_default():
        from tensorflow.compat.v1.keras.layers import Layer

        Layer().add_update([], inputs=True)


def test_classes_of_predictions(ipus):
    ipus(1)
    rows = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
    with strategy().scope():
        model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="identity", input_shape=(3,))])
        assert model.predict_classes(rows, batch_size=2).tolist() == rows.argmax(-1).tolist()
        np.testing.assert_array_equal(model.predict_proba(rows, 2), rows)
        one = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", input_shape=(3,))])
        expected = (rows.sum(-1, keepdims=True) > 0.5).astype("int32")
        assert one.predict_classes(rows, 2).tolist() == expected.tolist() and 0 < expected.sum() < 4


def test_initial_values_follow_the_seed_of_tensorflow(ipus, monkeypatch):
    """In TensorFlow 2.6 initializers of Keras drew from TensorFlow's generator: its numbers are the expected ones."""
    monkeypatch.setattr(keras2.module("backend")._SEED_GENERATOR, "generator", None, raising=False)
    ipus(1)
    limit = np.sqrt(6.0 / (6 + 4))  # Glorot's
    tf.random.set_seed(7)
    expected = [tf.random.uniform([6, 4], -limit, limit).numpy(), tf.random.normal([4, 2], stddev=0.5).numpy()]
    for scope in (contextlib.nullcontext, strategy().scope):
        tf.random.set_seed(7)
        with scope():
            last = keras.layers.Dense(2, kernel_initializer=keras.initializers.RandomNormal(stddev=0.5))
            model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4), last])
        for layer, values in zip(model.layers, expected):
            np.testing.assert_array_equal(layer.kernel.numpy(), values)

    def drawn(seed):
        return keras.initializers.RandomNormal(seed=seed)([3]).numpy()

    assert not (drawn(None) == drawn(None)).any() and (drawn(5) == drawn(5)).all()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.set_random_seed(7)
        made = keras.initializers.RandomNormal(stddev=0.5)([4, 2])
        sampled = [op for op in made.graph.get_operations() if op.type == "RandomStandardNormal"]
        assert [op.get_attr("seed") for op in sampled] == [7] and session.run(made).shape == (4, 2)


def test_batches_of_one_dimension_get_a_second_one():
    from keras.engine import data_adapter

    batch = {"flat": tf.constant([1, 2]), "whole": tf.ones([2, 3]), "scalar": tf.constant(1), "none": None}
    got = data_adapter.expand_1d((batch, np.ones(2)))
    assert got[0]["flat"].numpy().tolist() == [[1], [2]] and got[1].shape == (2,)
    assert got[0]["whole"] is batch["whole"] and got[0]["scalar"] is batch["scalar"] and got[0]["none"] is None


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
    from tf_ipu_shim.legacy.names.keras import one_keras

    class Asked:
        @property
        def __class__(self):
            raise AssertionError("asked")

    one_keras.exchange(one_keras._counterpart, "nothing")
    value = Asked()
    assert one_keras._counterpart(value) is value


@pytest.mark.filterwarnings("ignore:The `.*initializers.serialize")
@pytest.mark.parametrize(
    "initializer",
    [
        tf.zeros_initializer(),
        tf.ones_initializer(),
        tf.constant_initializer(0.5),
        tf.random_normal_initializer(0.0, 0.1, seed=3),
        tf.random_uniform_initializer(-1.0, 1.0),
    ],
    ids=lambda initializer: type(initializer).__name__,
)
@pytest.mark.parametrize("layer_of", [keras.layers.Dense, ipu_layers.PopnnLSTM])
def test_layers_made_of_a_configuration_have_it(layer_of, initializer):
    configuration = layer_of(4, kernel_initializer=initializer).get_config()
    again = layer_of.from_config(configuration)
    assert again.get_config() == configuration
    assert isinstance(again.kernel_initializer, getattr(keras.initializers, type(initializer).__name__))
    written = keras.initializers.serialize(initializer)
    assert written["class_name"] == type(initializer).__name__
    assert written["config"] == initializer.get_config()


def test_reductions_of_losses_in_the_place_of_tensorflow_2_4():
    reductions = importlib.import_module("tensorflow.python.ops.losses.loss_reduction").ReductionV2
    loss = keras.losses.MeanSquaredError(reduction=reductions.SUM)
    assert float(loss(tf.constant([[1.0], [2.0]]), tf.constant([[0.0], [0.0]]))) == 5.0
    assert set(reductions.all()) == {"auto", "none", "sum", "sum_over_batch_size"}
