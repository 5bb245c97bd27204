"""Keras models that are no function of their inputs: their own steps say what is computed."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from keras_models import SAMPLES, WIDTH, X, assert_near, keras, strategy

from tf_ipu_shim import errors

REAL = tf.data.Dataset.from_tensor_slices(X).batch(8, drop_remainder=True)


class Adversaries(keras.Model):
    """A generator and a discriminator, each with an optimizer of its own, and no `call`."""

    def __init__(self, discriminator, generator):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        self.losses_seen = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.losses_seen]

    def compile(self, optimizers, **options):
        super().compile(**options)
        self.optimizers = optimizers

    def train_step(self, real):
        noise = tf.sin(real[:, :4] * 3.0)
        labels = tf.concat([tf.ones((8, 1)), tf.zeros((8, 1))], 0)

        def loss_of_discriminator():
            return self.discriminator(tf.concat([self.generator(noise), real], 0)), labels

        def loss_of_generator():
            return self.discriminator(self.generator(noise)), tf.zeros((8, 1))

        for part, optimizer, judged in (
            (self.discriminator, self.optimizers[0], loss_of_discriminator),
            (self.generator, self.optimizers[1], loss_of_generator),
        ):
            with tf.GradientTape() as tape:
                scores, wanted = judged()
                loss = tf.reduce_mean(keras.losses.binary_crossentropy(wanted, scores, from_logits=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, part.trainable_weights), part.trainable_weights))
            self.losses_seen.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}


def adversaries():
    keras.utils.set_random_seed(3)
    generator = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, "tanh"), keras.layers.Dense(WIDTH)])
    # Without inputs: its variables are made in the step.
    return Adversaries(keras.Sequential([keras.layers.Dense(5, "relu"), keras.layers.Dense(1)]), generator)


def trained(**options):
    model = adversaries()
    model.compile([keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.01)], **options)
    history = model.fit(REAL, epochs=2, verbose=0).history
    return history["loss"], [weight.numpy() for weight in model.trainable_weights]


def test_a_model_without_call_trains_by_its_own_step(ipus):
    ipus(1)
    losses, weights = trained()
    with strategy().scope():
        got_losses, got_weights = trained(steps_per_execution=SAMPLES // 8)
    np.testing.assert_allclose(got_losses, losses, rtol=1e-5)
    assert len(got_weights) == len(weights) == 8
    for got, expected in zip(got_weights, weights):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_call_or_an_own_step_is_refused(ipus):
    ipus(1)
    with strategy().scope():
        model = adversaries()
        model.compile([keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1)])
        for run in (model.evaluate, model.predict):
            with pytest.raises(NotImplementedError, match="`call` for the model .* has not been implemented"):
                run(REAL)
        assert np.isfinite(model.fit(REAL, verbose=0).history["loss"]).all()


def dense(seed=1, units=3, **options):
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(seed), **options)


class Wide(keras.Model):
    """Trains two layers with an optimizer each."""

    def __init__(self):
        super().__init__()
        self.first, self.last = dense(1, 4), dense(2)

    def call(self, inputs):
        return self.last(self.first(inputs))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        for optimizer, layer in zip(self.optimizer, (self.first, self.last)):
            gradients = tape.gradient(loss, layer.trainable_variables)
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
        return {"loss": loss}


def wide_deep():
    deep = keras.Sequential([dense(2), dense(3, 1)])
    linear = keras.experimental.LinearModel(kernel_initializer=keras.initializers.GlorotUniform(1))
    return keras.experimental.WideDeepModel(linear, deep)


def two_optimizers():
    return [keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.01)]


@pytest.mark.one_version
@pytest.mark.parametrize(("make", "x"), [(Wide, X), (wide_deep, [X, X])])
def test_lists_of_optimizers(ipus, make, x):
    ipus(1)
    seen = []
    for scope in (contextlib.nullcontext(), strategy().scope()):
        with scope:
            model = make()
            model.compile(two_optimizers(), "mse")
            seen.append(
                (model.fit(x, X[:, :1], epochs=2, shuffle=False, batch_size=4, verbose=0).history, model.get_weights())
            )
    assert_near(*seen)


def test_lists_of_optimizers_are_refused_with_accumulation(ipus):
    ipus(1)
    with strategy().scope():
        for make, x in ((Wide, X), (wide_deep, [X, X])):
            model = make()
            model.compile(two_optimizers(), "mse", steps_per_execution=2)
            model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2)
            with pytest.raises(RuntimeError, match="`train_step` .* has been overridden"):
                model.fit(x, X[:, :1], batch_size=4, verbose=0)
        model = keras.Sequential([dense(1, WIDTH)])
        model.compile(two_optimizers(), "mse", steps_per_execution=2)
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2)
        with pytest.raises(errors.UnsupportedError, match="a list of 2 optimizers"):
            model.fit(X, X, batch_size=4, verbose=0)
