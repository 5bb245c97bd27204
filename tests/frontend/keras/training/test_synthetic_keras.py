"""Keras models whose data `TF_POPLAR_FLAGS` has made up: the program runs, its results are not sent."""

import numpy as np
import pytest
import tensorflow as tf
from harness import configure
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import keras2

pytestmark = pytest.mark.one_version

keras = keras2.public_module()
SYNTHETIC = "--use_synthetic_data --synthetic_data_initializer=random"


def model_of(kind):
    inputs = keras.Input([3])
    if kind != "pipelined":
        return keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Dense(4)(inputs)))
    with keras.ipu.PipelineStage(0):
        x = keras.layers.Dense(4)(inputs)
    with keras.ipu.PipelineStage(1):
        x = keras.layers.Dense(2)(x)
    model = keras.Model(inputs, x)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    return model


@pytest.mark.parametrize(
    ("kind", "ipus"), [("plain", 1), ("replicated", 2), ("asynchronous", 1), ("accumulating", 1), ("pipelined", 2)]
)
def test_metrics_and_predictions_are_zeros(kind, ipus, monkeypatch, own_environment):
    monkeypatch.setenv("TF_POPLAR_FLAGS", SYNTHETIC)
    configure(ipus)
    x, y = np.ones((32, 3), np.float32), np.ones((32, 2), np.float32)
    with ipu_strategy.IPUStrategy().scope():
        model = model_of(kind)
        if kind == "asynchronous":
            model.set_asynchronous_callbacks(True)
        if kind == "accumulating":
            model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2)
        model.compile("sgd", "mse", metrics=["mae"], steps_per_execution=4)
        before = model.get_weights()
        history = model.fit(x, y, batch_size=4, epochs=2, verbose=0).history
        assert history == {"loss": [0.0, 0.0], "mae": [0.0, 0.0]}
        assert model.evaluate(x, y, batch_size=4, verbose=0) == [0.0, 0.0]
        np.testing.assert_array_equal(model.predict(x, batch_size=4, verbose=0), np.zeros((32, 2)))
        # Made-up data of any kind changes weights: the program has run.
        assert any(np.any(one != other) for one, other in zip(before, model.get_weights()))


def test_with_feeds_alone_metrics_are_of_the_made_up_data(monkeypatch, own_environment):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_categories=infeed --synthetic_data_initializer=2")
    configure(1)
    with ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", input_shape=[3])])
        model.compile("sgd", "mse")
        loss = model.evaluate(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
        assert loss == (3 * 2 - 2) ** 2
        assert tf.reduce_all(model.predict(np.ones((8, 3)), batch_size=4, verbose=0) == 6.0)
