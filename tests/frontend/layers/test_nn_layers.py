"""Keras layers for IPUs, against those of Keras and NumPy, with and without a strategy."""

from __future__ import annotations

import unittest.mock
from collections.abc import Callable
from typing import Any

import ipu_tensorflow_addons.keras.layers as layers
import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from layer_harness import check_config, on_the_host, on_the_ipu, run
from nn_values import all_paths, grouped, numbers
from tf_ipu_shim.ipu import ipu_compiler, ipu_strategy, scopes

from tf_ipu_shim import keras2

pytestmark = pytest.mark.one_version

keras = keras2.public_module()


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize("axis", [1, 3])
def test_group_normalization(strided: bool, axis: int) -> None:
    x = numbers(2, 8, 3, 8)
    layer = layers.GroupNormalization(4, axis, epsilon=1e-2, strided_channel_grouping=strided)
    layer(x)
    beta, gamma = numbers(8), numbers(8) + 2
    layer.beta.assign(beta)
    layer.gamma.assign(gamma)
    along = [1, -1, 1, 1] if axis == 1 else [1, 1, 1, -1]
    expected = grouped(x, 4, axis, 1e-2, strided) * gamma.reshape(along) + beta.reshape(along)
    np.testing.assert_allclose(layer(x), expected, 1e-4, 1e-4)
    check_config(layer)


@pytest.mark.parametrize(
    ("layer", "x", "names"),
    [
        (layers.GroupNormalization(2), numbers(2, 3, 4), ["gamma", "beta"]),
        (layers.InstanceNormalization(), numbers(2, 3, 4), ["gamma", "beta"]),
        (layers.LayerNormalization(), numbers(2, 3, 4), ["gamma", "beta"]),
        (layers.LSTM(2), numbers(2, 3, 4), ["kernel", "recurrent_kernel", "biases"]),
        (layers.GRU(2), numbers(2, 3, 4), ["kernel", "recurrent_kernel", "biases"]),
    ],
)
def test_weights_have_names_and_order_of_legacy_checkpoints(layer: Any, x: Any, names: list[str]) -> None:
    layer(x)
    assert [weight.name.split("/")[-1] for weight in layer.weights] == [f"{name}:0" for name in names]


def test_instance_normalization() -> None:
    x = numbers(2, 3, 5, 4)
    layer = layers.InstanceNormalization(center=False, scale=False)
    np.testing.assert_allclose(layer(x), grouped(x, 4, 3, 1e-3, True), 1e-4, 1e-4)
    check_config(layer)
    assert not layer.weights


@pytest.mark.parametrize("axis", [-1, [1, 2], [3, 1]])
def test_layer_normalization_is_that_of_keras(axis: Any) -> None:
    x = numbers(2, 3, 5, 4)
    ours = layers.LayerNormalization(axis=axis, beta_regularizer=keras.regularizers.L2(0.5))
    theirs = keras.layers.LayerNormalization(axis=sorted(axis) if isinstance(axis, list) else axis)
    ours(x), theirs(x)
    if axis != [3, 1]:
        values = {"beta": numbers(*ours.beta.shape), "gamma": numbers(*ours.gamma.shape)}
        for layer in (ours, theirs):
            layer.beta.assign(values["beta"])
            layer.gamma.assign(values["gamma"])
    np.testing.assert_allclose(ours(x), theirs(x), 1e-4, 1e-5)
    assert len(ours.losses) == 1
    check_config(ours)


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: layers.GroupNormalization(), None, "Input has undefined rank"),
        (lambda: layers.GroupNormalization(channels_axis=5), [2, 4], "Axis is out of bounds"),
        (lambda: layers.GroupNormalization(8), [2, 4], "Invalid groups 8 for 4 channels"),
        (lambda: layers.GroupNormalization(3), [2, 4], "4 channels is not commensurate with 3"),
        (lambda: layers.GroupNormalization(2, 2), [2, 4, 4, 4], "Unsupported data format, group norm only supports"),
        (lambda: layers.LayerNormalization(axis="x"), [2, 4], "Expected an int or a list/tuple of"),
        (lambda: layers.LayerNormalization(), None, "has undefined rank"),
        (lambda: layers.LayerNormalization(axis=4), [2, 4], "Invalid axis: 4"),
        (lambda: layers.LayerNormalization(axis=[1, -1]), [2, 4], "Duplicate axis:"),
        (lambda: layers.LayerNormalization(), [2, None], "has unknown dimensions - "),
        (lambda: layers.Embedding(8, 4), [2, 3, 4], "The input shape should be a tensor"),
        (lambda: layers.SerialDense(8, 2, "kernel_rows"), [2, None], "The last dimension of the inputs to"),
        (lambda: layers.PopnnLSTM(4), [2, 4], "inputs tensor must be 3D"),
    ],
)
def test_build_refuses(make: Callable[[], Any], shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().build(tf.TensorShape(shape))


def test_dropout() -> None:
    x = np.ones([64, 32], np.float32)
    layer = check_config(layers.Dropout(0.25, noise_shape=[64, 1], seed=[1, 2]))
    np.testing.assert_array_equal(layer(x), x)
    dropped = layer(x, training=True).numpy()
    assert set(np.unique(dropped)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert np.array_equal(dropped, np.repeat(dropped[:, :1], 32, axis=1))
    np.testing.assert_array_equal(layer(x, training=True), dropped)
    np.testing.assert_array_equal(layers.Dropout(0.25, [64, 1], [1, 2], ref=False)(x, training=True), dropped)
    assert not check_config(layers.Dropout(0.25, ref=False)).ref


@pytest.mark.parametrize("dimension", ["input_columns", "input_rows_kernel_columns", "kernel_rows"])
def test_serial_dense_is_dense(dimension: str) -> None:
    layer = layers.SerialDense(6, 2, dimension, activation="relu")
    reference = keras.layers.Dense(6, "relu")
    x = numbers(3, 4, 8)
    expected = on_the_host(reference, x)
    for actual in (on_the_host(layer, x, reference.get_weights()), on_the_ipu(layer, x)):
        for one, other in zip(actual, expected):
            np.testing.assert_allclose(one, other, 1e-4, 1e-4)
    check_config(layer)


def test_serial_dense_splits_mini_batches_of_any_size() -> None:
    """The size of the mini-batch is known only when the model runs."""
    inputs = keras.Input((4,))
    layer = layers.SerialDense(3, 2, "input_columns")
    model = keras.Model(inputs, layer(inputs))
    x = numbers(6, 4)
    np.testing.assert_allclose(model(x), x @ layer.kernel.numpy(), 1e-4, 1e-4)
    with pytest.raises(ValueError, match=r"'serialization_factor' \(2\) to divide the columns of 'a' \(5\)"):
        model(x[:5])


def test_serial_dense_refuses() -> None:
    x = numbers(2, 4)
    with pytest.raises(ValueError, match="serialization_factor has to be at least 1"):
        layers.SerialDense(8, 0, "kernel_rows")(x)
    for layer in (
        lambda: layers.SerialDense(8, 2.7, "kernel_rows"),
        lambda: layers.Embedding(8, 4, serialization_factor=2.0),
    ):
        with pytest.raises(TypeError, match=r"serialization_factor has to be a whole number, but was 2\."):
            layer()
    with pytest.raises(ValueError, match="Invalid serialization_dimension=rows, expected one of: 'input_columns'"):
        layers.SerialDense(8, 2, "rows")(x)
    with pytest.raises(TypeError, match="Unable to build `SerialDense` layer with non-floating"):
        layers.SerialDense(8, 2, "kernel_rows", dtype="int32").build([2, 4])
    with pytest.raises(ValueError, match="The innermost dimension of input_shape must be"):
        layers.SerialDense(8, 2, "kernel_rows").compute_output_shape([2, None])


def test_embedding() -> None:
    tokens = np.array([[1, 2, 1], [0, 7, 3]], np.int32)
    layer = check_config(layers.Embedding(8, 4, serialization_factor=2, mask_zero=True))
    with tf.GradientTape() as tape:
        vectors = layer(tokens)
        total = tf.reduce_sum(vectors)
    table = layer.get_weights()[0]
    np.testing.assert_array_equal(vectors, table[tokens])
    gradient = tf.convert_to_tensor(tape.gradient(total, layer.embeddings)).numpy()
    np.testing.assert_array_equal(gradient[:, 0], np.bincount(tokens.reshape(-1), minlength=8))
    np.testing.assert_array_equal(layer.compute_mask(tf.constant(tokens)), tokens != 0)
    assert layer.compute_output_shape([2, 3]).as_list() == [2, 3, 4]


@pytest.mark.parametrize("layer", [layers.RecomputationCheckpoint(), layers.AssumeEqualAcrossReplicas(inplace=True)])
def test_layers_that_hand_on(layer: Any) -> None:
    given = {"a": tf.constant([1.0]), "b": [tf.constant([2])]}
    returned = layer(given)
    assert tf.nest.map_structure(lambda value: value.numpy().tolist(), returned) == {"a": [1.0], "b": [[2]]}
    check_config(layer)


@pytest.mark.parametrize("inplace", [False, True])
def test_assumption_goes_through_the_module_of_the_op(inplace: bool) -> None:
    name = "tensorflow.python.ipu.ops.cross_replica_ops.assume_equal_across_replicas"
    with unittest.mock.patch(name, side_effect=lambda x, inplace: 2 * x) as op:
        assert layers.AssumeEqualAcrossReplicas(inplace)(tf.constant(3.0)).numpy() == 6.0
    assert op.call_args.args[1:] == (inplace,)
    assert layers.AssumeEqualAcrossReplicas(inplace)(tf.constant(3.0)).numpy() == 3.0


def test_ctc_layers() -> None:
    logits, lengths = 2 * numbers(4, 2, 3), np.array([4, 3], np.int32)
    labels, label_length = np.array([[1, 2], [2, 0]], np.int32), np.array([2, 1], np.int32)
    log_probs = tf.nn.log_softmax(logits)
    loss = check_config(layers.CTCLoss(from_logits=True))(labels, logits, label_length, lengths)
    np.testing.assert_allclose(loss, layers.CTCLoss()(labels, log_probs, label_length, lengths), 1e-4)
    for sample, sequence in enumerate([(1, 2), (2,)]):
        paths = all_paths(log_probs[: lengths[sample], sample].numpy(), 0)
        np.testing.assert_allclose(loss[sample], -np.log(paths[sequence]), 1e-4)
    probabilities, found, decoded = check_config(layers.CTCInferenceLayer(top_paths=2))(log_probs, lengths)
    best = check_config(layers.CTCPredictionsLayer(top_paths=2, from_logits=True))(logits, lengths)
    np.testing.assert_array_equal(best, decoded[:, 0])
    for sample in range(2):
        (sequence, probability), *_ = all_paths(log_probs[: lengths[sample], sample].numpy(), 0).most_common(1)
        assert best[sample].numpy().tolist() == [*sequence] + [0] * (4 - len(sequence))
        np.testing.assert_allclose(probabilities[sample, 0], np.log(probability), 1e-4)
        assert found[sample, 0] == len(sequence)


def test_float16() -> None:
    x = numbers(2, 3, 8, dtype=np.float16)
    for layer in (
        layers.PopnnLSTM(4, dtype="float16"),
        layers.GroupNormalization(dtype="float16"),
        layers.LayerNormalization(dtype="float16"),
        layers.GroupNormalization(tf.float16, 4),
    ):
        wide = type(layer).from_config({**layer.get_config(), "dtype": "float32"})
        wide(x)
        outputs = layer(x)
        assert outputs.dtype == tf.float16
        wide.set_weights(layer.get_weights())
        np.testing.assert_allclose(outputs, wide(x.astype(np.float32)), 1e-2, 1e-2)


def test_in_a_model_under_a_strategy() -> None:
    def build() -> Any:
        inputs = keras.Input([5], batch_size=4, dtype=tf.int32)
        x = layers.Embedding(10, 8)(inputs)
        x = layers.PopnnLSTM(6, return_sequences=True)(x)
        x = layers.GroupNormalization(2)(x)
        x = layers.SerialDense(4, 2, "kernel_rows")(layers.PopnnGRU(6)(layers.LayerNormalization()(x)))
        return keras.Model(inputs, layers.Dropout(0.0)(x))

    tokens, plain = np.arange(20, dtype=np.int32).reshape(4, 5) % 10, build()
    with ipu_strategy.IPUStrategyV1().scope():
        model = build()
        model.set_weights(plain.get_weights())
        run = tf.function(lambda x: model(x, training=True), jit_compile=True)
        actual = run(tf.constant(tokens)).numpy()
    np.testing.assert_allclose(actual, plain(tokens, training=True), 1e-4, 1e-5)
    again = keras.Model.from_config(model.get_config(), {name: getattr(layers, name) for name in CLASSES})
    again.set_weights(plain.get_weights())
    np.testing.assert_allclose(again(tokens), plain(tokens), 1e-5, 1e-6)


def test_in_a_session() -> None:
    x, v1 = numbers(3, 5, 4), tf.compat.v1

    def build() -> list[Any]:
        return [layers.PopnnGRU(6, return_sequences=True), layers.InstanceNormalization(), layers.Dropout(0.5)]

    def apply(layers: list[Any], x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    plain = build()
    expected = apply(plain, tf.constant(x))
    values = [value for layer in plain for value in layer.get_weights()]
    with tf.Graph().as_default():
        fed, made = v1.placeholder(np.float32, x.shape), build()
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(lambda x: apply(made, x), [fed])
        variables = [variable for layer in made for variable in layer.trainable_variables]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for variable, value in zip(variables, values):
                variable.load(value, session)
            actual = session.run(result, {fed: x})
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-5)


CLASSES = ("Embedding", "PopnnLSTM", "PopnnGRU", "GroupNormalization", "LayerNormalization", "SerialDense", "Dropout")


def test_old_names_are_the_same_classes() -> None:
    import ipu_tensorflow_addons as addons
    from tensorflow.python import ipu
    from tensorflow.python.ipu.keras.layers.math import SerialDense

    for name in (*CLASSES, "GRU", "LSTM", "GroupNorm", "InstanceNorm", "LayerNorm", "RecomputationCheckpoint"):
        assert getattr(ipu.layers, name) is getattr(ipu.keras.layers, name) is getattr(addons.keras.layers, name)
    assert SerialDense is layers.SerialDense and ipu.losses.CTCLoss is layers.CTCLoss
    assert addons.v1.layers.PopnnLSTM is addons.layers.PopnnLSTM is ipu.rnn_ops.PopnnLSTM
    assert issubclass(layers.Embedding, layers.ipu_layer.IPULayer)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_dense_layer_of_floats_is_that_of_keras(dtype: str) -> None:
    from tf_ipu_shim.ipu.ops.f8_ops import Format, create_metadata

    x = tf.cast(numbers(3, 2), dtype)
    ours, theirs = (kind.Dense(4, activation="relu", dtype=dtype) for kind in (layers, keras.layers))
    ours(x), theirs(x)
    theirs.set_weights(ours.get_weights())
    for actual, expected in zip(run(ours, x), run(theirs, x)):
        np.testing.assert_array_equal(actual, expected)
    with pytest.raises(TypeError, match="was built for floats and got 8-bit floats"):
        ours(layers.ConvertToF8()(x, metadata=create_metadata(Format.F143)))


def test_mixed_precision() -> None:
    x = numbers(2, 3, 8)
    for make in (
        lambda dtype: layers.PopnnLSTM(4, stateful=True, dtype=dtype),
        lambda dtype: layers.PopnnGRU(4, dtype=dtype),
        lambda dtype: layers.GroupNormalization(dtype=dtype),
        lambda dtype: layers.LayerNormalization(dtype=dtype),
        lambda dtype: layers.SerialDense(4, 2, "kernel_rows", dtype=dtype),
    ):
        mixed, plain = make(keras.mixed_precision.Policy("mixed_float16")), make("float32")
        outputs = mixed(x)
        plain(x)
        plain.set_weights(mixed.get_weights())
        if isinstance(plain, layers.PopnnLSTM):
            plain.reset_states()
        assert outputs.dtype == tf.float16 and mixed.weights[0].dtype == tf.float32
        np.testing.assert_allclose(outputs, plain(x), 1e-2, 1e-2)
