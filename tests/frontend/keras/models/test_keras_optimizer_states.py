"""Files of the format `.keras` have the state of the optimizers that `tf.keras.optimizers` means with `ipu`."""

import numpy as np
import pytest
from keras_models import X, Y, assert_near, keras, strategy

from tf_ipu_shim.configuration import warnings

pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")

OPTIMIZERS = {
    "momentum": lambda: keras.optimizers.legacy.SGD(0.05, momentum=0.9),
    "adam": lambda: keras.optimizers.legacy.Adam(0.01),
}


def fit(model):
    return model.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"]


def model_of(optimizer):
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.layers.Dense(4, "tanh", input_shape=X.shape[1:]), keras.layers.Dense(3)])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_after_loading(ipus, tmp_path, name):
    ipus(1)
    expected = model_of(OPTIMIZERS[name]())
    losses = [fit(expected), fit(expected)]
    with strategy().scope():
        model = model_of(OPTIMIZERS[name]())
        first = fit(model)
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        assert_near([first, fit(loaded)], losses)
    assert loaded.optimizer.iterations == expected.optimizer.iterations
    assert_near(loaded.get_weights(), expected.get_weights())
    outside = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(outside.optimizer.iterations, model.optimizer.iterations)


def test_a_state_of_another_optimizer_is_named(monkeypatch):
    lines = []
    monkeypatch.setattr(warnings, "warn", lines.append)
    model = model_of(OPTIMIZERS["adam"]())
    fit(model)
    before = model.optimizer.get_weights()
    model.optimizer.load_own_variables({"0": np.int64(7)})
    assert [line.partition(",")[0] for line in lines] == [
        "The state of Adam is not read: the file has 1 variables of the optimizer"
    ]
    for value, stock in zip(model.optimizer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, stock)
