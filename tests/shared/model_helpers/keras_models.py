"""Keras models that tests train on the IPU, and by stock Keras on the CPU."""

import contextlib
import functools

import numpy as np
import tensorflow as tf
from harness import assert_close

from tf_ipu_shim import ipu, keras2

keras = keras2.public_module()
SAMPLES, WIDTH, CLASSES = 64, 6, 3
random = np.random.RandomState(0)
X = random.rand(SAMPLES, WIDTH).astype("f")
Y = random.randint(0, CLASSES, SAMPLES)
SGD = functools.partial(keras.optimizers.SGD, 0.1)


def sequential():
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((WIDTH,)),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.Dense(8, activation="tanh", name="second"),
            keras.layers.Dense(8, kernel_regularizer="l2", name="third"),
            keras.layers.Dense(CLASSES, name="fourth"),
        ]
    )


def functional(stages=(None, None, None, None)):
    """`stages`: one for each of four parts; None: no stage."""
    keras.utils.set_random_seed(1)

    def in_stage(place):
        return contextlib.nullcontext() if stages[place] is None else keras.ipu.PipelineStage(stages[place])

    inputs = keras.Input((WIDTH,))
    with in_stage(0):
        first = keras.layers.Dense(8, activation="relu", name="first")(inputs)
    with in_stage(1):
        second = keras.layers.Dense(8, activation="tanh", name="second")(first)
    with in_stage(2):
        joined = keras.layers.Add(name="joined")([second, first])
        third = keras.layers.Dense(8, name="third", kernel_regularizer="l2")(joined)
    with in_stage(3):
        outputs = keras.layers.Dense(CLASSES, name="fourth")(third)
    return keras.Model(inputs, outputs)


def subclassed(stages=None):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(8, activation="relu")
            self.last = keras.layers.Dense(CLASSES)

        def call(self, x):
            with contextlib.nullcontext() if stages is None else keras.ipu.PipelineStage(0):
                x = self.first(x)
            with contextlib.nullcontext() if stages is None else keras.ipu.PipelineStage(1):
                return self.last(x)

    keras.utils.set_random_seed(1)
    return Own()


def compiled(model, optimizer=SGD, **options):
    model.compile(
        optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options
    )
    return model


def strategy():
    return ipu.ipu_strategy.IPUStrategy()


def trained(model, batch=8, epochs=2, **options):
    """History, metrics of an evaluation, predictions and weights."""
    history = model.fit(X, Y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, **options).history
    evaluation = model.evaluate(X, Y, batch_size=8, verbose=0)
    return history, evaluation, model.predict(X, batch_size=8, verbose=0), model.get_weights()


@functools.cache
def on_the_cpu(make, batch=8, optimizer=SGD):
    return trained(compiled(make(), optimizer), batch)


def assert_same(got, expected):
    assert list(got[0]) == list(expected[0])
    for name, values in expected[0].items():
        np.testing.assert_allclose(got[0][name], values, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-4)
    assert_close(got[2], expected[2], what="predictions")
    assert len(got[3]) == len(expected[3])
    for number, (one, other) in enumerate(zip(got[3], expected[3])):
        assert_close(one, other, what=f"weight {number}")


def assert_near(got, expected):
    """Compares structures of arrays."""
    tf.nest.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5), got, expected
    )
