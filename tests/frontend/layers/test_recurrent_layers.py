"""The recurrent Keras layers for IPUs, against those of Keras: weights, states, what they refuse."""

from __future__ import annotations

from typing import Any

import ipu_tensorflow_addons.keras.layers as layers
import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from layer_harness import check_config, on_the_host, on_the_ipu
from nn_values import numbers
from slow_cases import slowly
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import errors, keras2

pytestmark = pytest.mark.one_version

keras = keras2.public_module()


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


RECURRENT = [
    ("PopnnLSTM", "LSTM", {}),
    ("PopnnGRU", "GRU", {}),
    ("PopnnGRU", "GRU", {"reset_after": False, "activation": "relu", "recurrent_activation": "hard_sigmoid"}),
]


@pytest.mark.parametrize(
    ("ours", "theirs", "arguments", "time_major"),
    [
        *((*RECURRENT[number], number == 1) for number in range(3)),
        *(slowly(*RECURRENT[number], number != 1) for number in range(3)),
    ],
)
def test_recurrent_layers_have_the_weights_of_keras(ours: str, theirs: str, arguments: Any, time_major: bool) -> None:
    x = numbers(3, 5, 4)
    common = {"return_sequences": time_major, "return_state": True, "time_major": time_major, **arguments}
    layer, reference = getattr(layers, ours)(6, **common), getattr(keras.layers, theirs)(6, **common)
    layer(x), reference(x)
    assert [weight.shape for weight in layer.weights] == [weight.shape for weight in reference.weights]
    if ours == "PopnnLSTM":
        np.testing.assert_array_equal(layer.get_weights()[2], reference.get_weights()[2])
    values = [numbers(*weight.shape) for weight in layer.weights]
    layer.set_weights(values)
    reference.set_weights(values)

    expected = on_the_host(reference, x)
    for actual in (on_the_host(layer, x), on_the_ipu(layer, x)):
        for one, other in zip(actual, expected):
            np.testing.assert_allclose(one, other, 1e-3, 1e-4)
    check_config(layer)


@pytest.mark.parametrize(("ours", "theirs", "arguments"), RECURRENT[:2])
def test_stateful_layers_go_on(ours: str, theirs: str, arguments: Any) -> None:
    x = numbers(3, 4, 2)
    layer, whole = getattr(layers, ours)(5, stateful=True), getattr(layers, ours)(5)
    layer(x[:, :2])
    whole(x)
    whole.set_weights(layer.get_weights())  # states are none of them
    np.testing.assert_allclose(layer(x[:, 2:]), whole(x), 1e-5, 1e-6)
    layer.reset_states()
    np.testing.assert_allclose(layer(x), whole(x), 1e-5, 1e-6)
    start = [numbers(3, 5)] * (2 if ours == "PopnnLSTM" else 1)
    layer.reset_states(start)
    np.testing.assert_allclose(layer(x), whole(x, initial_state=list(map(tf.constant, start))), 1e-5, 1e-6)


def test_recurrent_dropout_drops_features_for_all_time_steps() -> None:
    x = np.ones([2, 3, 64], np.float32)
    layer = layers.PopnnGRU(4, dropout=0.5, dropout_seed=[1, 2], return_sequences=True)
    mask = layers.Dropout(0.5, [1, 2, 64], [1, 2])(np.ones([3, 2, 64], np.float32), training=True).numpy()
    expected = layer(mask.transpose(1, 0, 2))
    np.testing.assert_allclose(layer(x, training=True), expected, 1e-5, 1e-6)
    assert np.any(layer(x).numpy() != expected.numpy())


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"use_bias": False},
        {"kernel_regularizer": "l2"},
        {"recurrent_regularizer": "l2"},
        {"bias_regularizer": "l2"},
        {"activity_regularizer": "l2"},
        {"kernel_constraint": "non_neg"},
        {"recurrent_constraint": "non_neg"},
        {"bias_constraint": "non_neg"},
        {"recurrent_dropout": 0.1},
        {"implementation": 3},
        {"go_backwards": True},
        {"unroll": True},
    ],
)
def test_recurrent_layers_refuse(layer: str, arguments: Any) -> None:
    with pytest.raises(ValueError, match=f"IPU custom {layer} layer does not support {next(iter(arguments))}"):
        getattr(layers, layer)(4, **arguments)


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
@pytest.mark.parametrize("arguments", [{"activation": "relu"}, {"recurrent_activation": "hard_sigmoid"}])
def test_recurrent_layers_of_sdk_1_4_have_fixed_activations(monkeypatch: Any, layer: str, arguments: Any) -> None:
    getattr(layers, layer)(4, **arguments)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.4")
    getattr(layers, layer)(4, activation="tanh", recurrent_activation="sigmoid")
    with pytest.raises(ValueError, match=f"IPU custom {layer} layer does not support {next(iter(arguments))}"):
        getattr(layers, layer)(4, **arguments)


def test_recurrent_layers_of_sdk_1_2_take_the_state_second(monkeypatch: Any) -> None:
    x, state = numbers(2, 3, 4), [numbers(2, 4), numbers(2, 4)]
    layer = layers.PopnnLSTM(4)
    expected = layer(x, initial_state=state).numpy()
    with pytest.raises(errors.UnsupportedError, match="Pass initial_state and training by keyword"):
        layer(x, state)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.2")
    np.testing.assert_array_equal(layer(x, state).numpy(), expected)


def test_recurrent_layers_refuse_masks_and_other_activations() -> None:
    with pytest.raises(errors.UnsupportedError, match="does not support masks"):
        layers.PopnnLSTM(4)(numbers(2, 3, 4), mask=tf.ones([2, 3], tf.bool))
    with pytest.raises(ValueError, match="Unsupported activation 'elu'"):
        layers.PopnnLSTM(4, activation="elu")


@pytest.mark.parametrize("name", ["LSTM", slowly("GRU")])
def test_a_stateful_model_goes_on_as_that_of_keras(name: str) -> None:
    x, y = numbers(6, 4, 2), numbers(6, 5)

    def history(model: Any, weights: Any = None) -> list[Any]:
        model.compile("sgd", "mse")
        if weights is not None:
            model.set_weights(weights)
        results = [model.get_weights()]
        for _ in range(2):
            results.append(model.predict(x, batch_size=3, verbose=0))
            results.append(model.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0).history["loss"])
            model.reset_states()
        return results

    options = {"stateful": True, "batch_input_shape": (3, 4, 2)}
    weights, *expected = history(keras.Sequential([getattr(keras.layers, name)(5, **options)]))
    with ipu_strategy.IPUStrategy().scope():
        _, *actual = history(keras.Sequential([getattr(layers, name)(5, **options)]), weights)
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_states_of_a_graph_are_among_the_updates(name: str) -> None:
    x = numbers(3, 4, 2)
    whole = getattr(layers, name)(5)
    expected, weights = whole(x), whole.get_weights()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fed = tf.compat.v1.placeholder(tf.float32, [3, 2, 2])
        with tf.device(IPU):
            layer = getattr(layers, name)(5, stateful=True)
            output = layer(fed)
        session.run(tf.compat.v1.global_variables_initializer())
        for variable, value in zip(layer.trainable_variables, weights):
            variable.load(value, session)
        session.run([output, layer.updates], {fed: x[:, :2]})
        np.testing.assert_allclose(session.run(output, {fed: x[:, 2:]}), expected, 1e-5, 1e-6)
