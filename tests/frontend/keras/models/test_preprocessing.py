"""Preprocessing layers that adapt to data in a strategy's scope: what stock Keras learns, from data of any shape."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import strategy

from tf_ipu_shim import keras2

keras = keras2.public_module()
NUMBERS = np.random.RandomState(0).randn(100, 2).astype(np.float32)  # 32 a batch, and 4 remain
WORDS = np.array(list("abcaab") * 7)
LAYERS = {
    "numbers": (lambda: keras.layers.Normalization(), NUMBERS, NUMBERS),
    "batches": (lambda: keras.layers.Normalization(), tf.data.Dataset.from_tensor_slices(NUMBERS).batch(7), NUMBERS),
    "bins": (lambda: keras.layers.Discretization(num_bins=4), NUMBERS, NUMBERS),
    "words": (lambda: keras.layers.StringLookup(), WORDS, WORDS),
    "integers": (lambda: keras.layers.IntegerLookup(), np.arange(9), np.arange(12)),
    "texts": (lambda: keras.layers.TextVectorization(), ["a b", "c a d"], ["d a b"]),
}


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of Keras' own Discretization, with NumPy 2
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_learn_what_stock_keras_learns(layer):
    make, data, samples = LAYERS[layer]
    stock, ours = make(), make()
    stock.adapt(data)
    with strategy().scope():
        ours.adapt(data)
    np.testing.assert_array_equal(ours(samples), stock(samples))


def test_a_model_trains_behind_an_adapted_layer():
    def losses():
        layer = keras.layers.Normalization()
        layer.adapt(NUMBERS)
        model = keras.Sequential([layer, keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
        return model.fit(NUMBERS[:64], NUMBERS[:64, :1], batch_size=8, epochs=2, shuffle=False, verbose=0).history

    expected = losses()
    with strategy().scope():
        np.testing.assert_allclose(losses()["loss"], expected["loss"], rtol=1e-5)
        with pytest.raises(RuntimeError, match="next"):  # again an iterator for programs
            next(iter(tf.data.Dataset.range(3).map(lambda one: tf.cast(one, tf.int32))))
