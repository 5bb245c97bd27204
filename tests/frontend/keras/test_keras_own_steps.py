"""Keras models that are no function of their inputs: their own steps say what is computed."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import SAMPLES, WIDTH, X, keras, strategy

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
