"""`EffectiveTransformer` against attention in NumPy, a few sequences at a time, trained, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from ipu_tensorflow_addons.keras.layers import EffectiveTransformer
from layer_harness import check_config
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import keras2

pytestmark = pytest.mark.one_version

keras = keras2.public_module()
HEADS, SIZE, UNITS = 2, 3, 4
FROM_LENGTHS, TO_LENGTHS = np.array([2, 4, 1, 3, 4]), np.array([[3], [1], [5], [2], [4]])


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


def sequences() -> tuple[np.ndarray, np.ndarray]:
    # What stands in the padding has no influence.
    generator = np.random.default_rng(3)
    return generator.normal(size=(5, 4)).astype(np.float32), generator.normal(size=(5, 5)).astype(np.float32)


def made(at_a_time: int = 2, **options: Any) -> Any:
    options = {"num_attention_heads": HEADS, "attention_head_size": SIZE, **options}
    return EffectiveTransformer(UNITS, 10, sequences_per_iter=at_a_time, **options)


def with_weights(layer: Any, shapes: list[Any]) -> Any:
    layer.build(shapes)
    generator = np.random.default_rng(4)
    layer.set_weights([generator.normal(size=weight.shape) for weight in layer.weights])
    return layer


def weights_of(layer: Any) -> dict[str, np.ndarray]:
    # "query_layer/kernel" and the like
    return {"/".join(weight.name[:-2].split("/")[-2:]): weight.numpy() for weight in layer.weights}


def attended(
    layer: Any, sources: np.ndarray, targets: np.ndarray, scale: float = 1.0, mask: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The context and the dense layer's output, sequence by sequence, without activations."""
    weights = weights_of(layer)

    def heads(name: str, row: np.ndarray, length: int) -> np.ndarray:
        embedded = row[:, None] * weights[f"{name}_layer/kernel"] + weights[f"{name}_layer/bias"]
        embedded[length:] = 0
        return embedded.reshape(-1, HEADS, SIZE)

    context = np.zeros((*sources.shape, HEADS, SIZE))
    for index, (row, other) in enumerate(zip(sources, targets)):
        query = heads("query", row, FROM_LENGTHS[index])
        key, value = (heads(name, other, TO_LENGTHS[index, 0]) for name in ("key", "value"))
        for head in range(HEADS):
            scores = np.exp(query[:, head] @ key[:, head].T * scale)
            context[index, :, head] = scores / scores.sum(-1, keepdims=True) @ value[:, head]
            if mask is not None:
                context[index, :, head] *= mask[index, head]
    flat = context.reshape(len(context), -1)
    return context, flat @ weights["output_layer/kernel"] + weights["output_layer/bias"]


def inputs_of(sources: Any, targets: Any, *mask: Any) -> list[Any]:
    return [sources, FROM_LENGTHS[:, None], targets, TO_LENGTHS, *mask]


@pytest.mark.parametrize("at_a_time", [1, 2, 5])
def test_values_are_those_of_attention(at_a_time: int) -> None:
    sources, targets = sequences()
    mask = np.array([[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]], bool)
    layer = with_weights(made(at_a_time, use_scale=True), [(5, 4), (5, 1), (5, 5), (5, 1)])
    weights = weights_of(layer)
    scale = float(next(weight.numpy()[0] for weight in layer.weights if weight.name.endswith("scale:0")))
    context, flat = attended(layer, sources, targets, scale, mask)
    mean, variance = flat.mean(-1, keepdims=True), flat.var(-1, keepdims=True)
    gamma, beta = (next(weights[name] for name in weights if name.endswith(end)) for end in ("gamma", "beta"))
    output = (flat - mean) / np.sqrt(variance + 1e-3) * gamma + beta

    compiled = tf.function(lambda *inputs: layer(list(inputs), training=False), autograph=False, jit_compile=True)
    inputs = inputs_of(sources, targets, mask)
    with tf.device(IPU):
        on_ipu = compiled(*map(tf.constant, inputs))
    for actual in (layer(inputs, training=False), on_ipu):
        np.testing.assert_allclose(actual[0], output, 1e-4, 1e-4)
        np.testing.assert_allclose(actual[1], context, 1e-4, 1e-5)


def test_activations_and_no_normalisation() -> None:
    sources, targets = sequences()
    layer = with_weights(made(output_activation="relu", layer_norm_output=False), [(5, 4), (5,), (5, 5), (5,)])
    _, flat = attended(layer, sources, targets)
    np.testing.assert_allclose(layer(inputs_of(sources, targets))[0], np.maximum(flat, 0), 1e-4, 1e-5)
    layer = with_weights(made(qkv_activation="relu", layer_norm_output=False), [(5, 4), (5,), (5, 5), (5,)])
    assert np.min(layer(inputs_of(sources, targets))[1]) >= 0, "weighted values that are not below 0"


def test_the_gradient_drops_what_the_result_dropped() -> None:
    # With keys and kernels of 0 and a bias of 1 a place's context is the sum of the softmax's results that are left,
    # and so is the bias' gradient.
    layer = made(2, attention_dropout_prob=0.5, num_attention_heads=1, attention_head_size=1)
    layer.build([(5, 4), (5, 1), (5, 5), (5, 1)])
    layer.set_weights([np.full(weight.shape, weight is layer.value_layer.bias, np.float32) for weight in layer.weights])

    @tf.function(jit_compile=True)
    def step(inputs: Any, training: bool) -> Any:
        with tf.GradientTape() as tape:
            context = layer(inputs, training=training)[1]
            total = tf.reduce_sum(context)
        return context, total, tape.gradient(total, layer.value_layer.bias)

    inputs = list(map(tf.constant, inputs_of(*sequences())))
    with tf.device(IPU):
        context, total, gradient = step(inputs, True)
        kept, _, _ = step(inputs, False)
    np.testing.assert_allclose(kept[:, :, 0, 0], np.repeat(TO_LENGTHS / 5, 4, 1), 1e-5)
    # Of five equal results each that is left counts twice.
    steps = context.numpy() / 0.4
    np.testing.assert_allclose(steps, steps.round(), atol=1e-5)
    assert not np.allclose(context, kept), "something was dropped"
    np.testing.assert_allclose(gradient, [total], 1e-5)


def test_output_dropout_comes_before_the_normalisation() -> None:
    layer = with_weights(made(output_dropout_prob=0.5, layer_norm_output=False), [(5, 4), (5,), (5, 5), (5,)])
    sources, targets = sequences()
    _, flat = attended(layer, sources, targets)
    output = layer(inputs_of(sources, targets), training=True)[0].numpy()
    assert 0 < np.count_nonzero(output) < output.size
    np.testing.assert_allclose(output[output != 0], (2 * flat)[output != 0], 1e-4)
    assert made(output_dropout_prob=0.5)(inputs_of(sources, targets), training=True)[0].shape == (5, UNITS)


def test_a_keras_model_is_trained_as_op_by_op() -> None:
    data, goal = inputs_of(*sequences()), np.ones((5, UNITS), np.float32)
    alone = with_weights(made(), [(5, 4), (5, 1), (5, 5), (5, 1)])
    first, optimizer, expected = alone.get_weights(), keras.optimizers.SGD(0.05), []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((alone(data)[0] - goal) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, alone.trainable_variables), alone.trainable_variables))
        expected.append(loss.numpy())
    with ipu_strategy.IPUStrategy().scope():
        inputs = [
            keras.Input(shape, 5, dtype=dtype)
            for shape, dtype in ((4, np.float32), (1, np.int32), (5, np.float32), (1, np.int32))
        ]
        layer = made()
        model = keras.Model(inputs, layer(inputs)[0])
        layer.set_weights(first)
        model.compile(keras.optimizers.SGD(0.05), "mse")
        losses = model.fit(data, goal, batch_size=5, epochs=4, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, expected, 1e-4)
    assert losses[-1] < losses[0]


def test_configuration() -> None:
    again = check_config(made(3, use_scale=True, qkv_activation="relu", attention_dropout_prob=0.1))
    assert (again.sequences_per_iter, again.use_scale, again.attention_dropout_prob) == (3, True, 0.1)
    check_config(made(output_initializer=keras.initializers.Ones(), output_dropout_prob=0.2, layer_norm_output=False))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(3, 3, 1), (3,), (3, 3), (3,)], "must be equal rank"),
        ([(4, 3), (4,), (3, 3), (3,)], "must contain an equal number of sequences"),
        ([(3, 3), (4,), (3, 3), (4,)], "have lengths equal to the number of sequences"),
        ([(3, 3), (3,), (3, 3), (3,), (3, 3)], r"q_mask must have shape.*\[3, 2\] here"),
        ([(3, 3, 1), (3,), (3, 3, 1), (3,)], "Sequences must be rows of numbers"),
        ([(3, 3), (3, 2), (3, 3), (3, 2)], "their lengths"),
        ([(3, 3), (3,), (3, 3)], "either four or five inputs"),
    ],
)
def test_inputs_that_do_not_fit(shapes: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()([np.zeros(shape, np.float32 if index % 2 == 0 else np.int32) for index, shape in enumerate(shapes)])


def test_types_and_sizes_that_do_not_fit() -> None:
    lengths = np.array([3, 3])
    with pytest.raises(ValueError, match="must be equal types"):
        made()([np.zeros((2, 3), np.float32), lengths, np.zeros((2, 3), np.int32), lengths])
    with pytest.raises(ValueError, match="max_batch_size must be greater than sequences_per_iter"):
        EffectiveTransformer(4, 2, sequences_per_iter=3)
