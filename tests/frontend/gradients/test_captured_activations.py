"""Layers that capture the gradients of their activations, and 8-bit floats."""

from __future__ import annotations

from typing import Any

import ipu_tensorflow_addons.keras.layers as layers
import numpy as np
import pytest
import tensorflow as tf
from harness import configure
from layer_harness import check_config
from nn_values import numbers

from tf_ipu_shim import keras2

keras = keras2.public_module()


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


def test_captured_gradients() -> None:
    from keras.ipu.layers import CaptureActivationGradients, CaptureUpstreamGradients
    from tf_ipu_shim.ipu.eager.backprop import GradientCaptureTape

    x = numbers(3, 4)
    dense = keras.layers.Dense(5, "tanh")
    before = CaptureActivationGradients(dense)
    after = CaptureUpstreamGradients(keras.layers.Dense(2), tag="end")
    with GradientCaptureTape() as tape:
        hidden = before(x)
        total = tf.reduce_sum(after(hidden) ** 2)
    tape.gradient(total, before.trainable_variables + after.trainable_variables)
    captured = {name: np.asarray(tf.nest.flatten(value)[0]) for name, value in tape.captured_gradients.items()}
    upstream = 2 * after(hidden).numpy()
    np.testing.assert_allclose(captured["end"], upstream, 1e-5)
    expected = (upstream @ after.layer.kernel.numpy().T) * (1 - hidden.numpy() ** 2)
    np.testing.assert_allclose(captured[before.tag], expected, 1e-4, 1e-5)
    assert before.layer is dense and len(before.weights) == 2
    np.testing.assert_allclose(hidden, dense(x), 1e-6)
    check_config(CaptureUpstreamGradients(keras.layers.Dense(2), tag="end"))


def test_captured_gradients_of_several_activations() -> None:
    from keras.ipu.layers import CaptureActivationGradients
    from tf_ipu_shim.ipu.eager.backprop import GradientCaptureTape

    class TwoFunctions(keras.layers.Layer):
        def __init__(self, activation: Any = "tanh", second_activation: Any = "linear") -> None:
            super().__init__()
            self._activation = keras.activations.get(activation)
            self.second_activation = keras.activations.get(second_activation)

        def call(self, inputs: Any) -> Any:
            return 2 * self._activation(inputs) + 3 * self.second_activation(inputs)

        def get_config(self) -> dict[str, Any]:
            return {"activation": self._activation, "second_activation": self.second_activation}

    x = tf.Variable(numbers(3, 4))
    layer = CaptureActivationGradients(TwoFunctions(), tag="two")
    with GradientCaptureTape() as tape:
        total = tf.reduce_sum(layer(x))
    tape.gradient(total, x)
    captured = {name: np.asarray(tf.nest.flatten(value)[0]) for name, value in tape.captured_gradients.items()}
    expected = {"two_activation": 2 * (1 - np.tanh(x) ** 2), "two_second_activation": np.full([3, 4], 3.0)}
    assert captured.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(captured[name], value, 1e-5)
    assert layer.layer.second_activation is keras.activations.linear  # as before the call


def test_layers_whose_activations_are_captured() -> None:
    from keras.ipu.layers import CaptureActivationGradients

    sequence = numbers(2, 3, 4)
    with pytest.raises(ValueError, match="computed in a loop over time steps.*unroll=True"):
        CaptureActivationGradients(keras.layers.LSTM(5))(sequence)
    layer = keras.layers.LSTM(5, unroll=True)
    np.testing.assert_allclose(CaptureActivationGradients(layer)(sequence), layer(sequence), 1e-6)
    for without in (keras.layers.Flatten(), keras.layers.Bidirectional(keras.layers.SimpleRNN(2))):
        assert not CaptureActivationGradients.layer_is_supported(without)
        with pytest.raises(ValueError, match="does not use an activation"):
            CaptureActivationGradients(without)


def test_eight_bits() -> None:
    from tf_ipu_shim.ipu.ops.f8_ops import Format, convert_from_f8, create_metadata

    x = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -4.0]], np.float16)  # Each is one of the numbers of eight bits.
    packed = layers.ConvertToF8()(x, metadata=create_metadata(Format.F143))
    assert packed[0].dtype == tf.uint8
    np.testing.assert_array_equal(check_config(layers.ConvertFromF8())(packed), x)
    assert layers.ConvertFromF8(tf.float32)(packed).dtype == tf.float32
    dense = layers.Dense(4, Format.F152, kernel_scale=1, activation="relu")
    result = dense(packed)
    kernel = convert_from_f8(dense.kernel, tf.float32).numpy()
    assert np.any(kernel) and result.dtype == tf.float16
    np.testing.assert_allclose(result, np.maximum(x.astype(np.float32) @ kernel, 0), 1e-2, 1e-2)
    check_config(dense)
    with pytest.raises(ValueError, match=r"`kernel_scale` should be in the range \[-32, "):
        layers.Dense(4, kernel_scale=32)
    with pytest.raises(TypeError, match="Unable to build `Dense` layer with non-floating"):
        layers.Dense(4, dtype="int32").build([[2, 3], []])
    with pytest.raises(ValueError, match="The last dimension of the inputs to"):
        layers.Dense(4).build([[2, None], []])
    assert [weight.name.split("/")[-1] for weight in dense.weights] == ["kernel_data:0", "kernel_metadata:0", "bias:0"]
    dense.set_weights(dense.get_weights())
    with pytest.raises(
        TypeError, match="was built for 8-bit floats and got floats; both must be equal. Create another layer"
    ):
        dense(x)
