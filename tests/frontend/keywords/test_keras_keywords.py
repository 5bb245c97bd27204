"""Keywords that public programs pass to Keras: a model trained on the IPU ends as one trained by stock Keras."""

import glob
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, configure
from keras_models import keras, strategy

pytestmark = [
    pytest.mark.one_version,
    pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file"),
]
random = np.random.RandomState(0)
X = random.normal(size=[32, 8, 3]).astype(np.float32)
Y = X.sum(axis=(1, 2))
ADAM, SGD = keras.optimizers.legacy.Adam, keras.optimizers.legacy.SGD


def _normalised(gradients):
    return [(gradient / (tf.norm(gradient) + 1e-3), variable) for gradient, variable in gradients]


def _drops():
    return keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=3, decay_rate=0.5, staircase=True)


# What a training is given besides: an optimizer, a loss, arguments of `fit`.
TRAININGS = {
    "SGD(gradient_transformers)": (lambda: SGD(0.1, gradient_transformers=[_normalised]), "mse", {}),
    "Adam(gradient_transformers)": (lambda: ADAM(0.1, epsilon=1e-4, gradient_transformers=[_normalised]), "mse", {}),
    "SGD(gradient_aggregator)": (lambda: SGD(0.1, gradient_aggregator=_normalised), "mse", {}),
    "Adam(beta_1, beta_2)": (lambda: ADAM(0.1, beta_1=0.5, beta_2=0.6), "mse", {}),
    "Adam(clipnorm)": (lambda: ADAM(0.1, clipnorm=0.1), "mse", {}),
    "SGD(global_clipnorm)": (lambda: SGD(0.1, global_clipnorm=0.1), "mse", {}),
    "SGD(decay)": (lambda: SGD(0.01, decay=0.1, momentum=0.9, nesterov=True), "mse", {}),
    "ExponentialDecay(staircase)": (lambda: SGD(_drops()), keras.losses.Huber(delta=0.1), {}),
    "Huber(delta)": (lambda: SGD(0.1), keras.losses.Huber(delta=0.1), {}),
    "fit(initial_epoch)": (lambda: SGD(0.01), "mse", {"initial_epoch": 2}),
    "fit(sample_weight)": (lambda: SGD(0.01), "mse", {"sample_weight": np.arange(32) / 10}),
}


def _histograms(folder, epochs):
    events = (event for file in glob.glob(f"{folder}/train/*") for event in tf.compat.v1.train.summary_iterator(file))
    tags = [value.tag for event in events for value in event.summary.value if "histogram" in value.tag]
    return len(tags) / 6 == epochs  # three kernels and three biases


def _files(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


# For each callback what it leaves behind: the same on both.
CALLBACKS = {
    "TensorBoard(log_dir, histogram_freq)": (
        lambda to: keras.callbacks.TensorBoard(log_dir=to, histogram_freq=1, profile_batch=0),
        lambda to, _: _histograms(to, 3),
    ),
    "TensorBoard(profile_batch)": (
        lambda to: keras.callbacks.TensorBoard(log_dir=to, profile_batch=(1, 2)),
        lambda to, _: len(glob.glob(f"{to}/**/*.xplane.pb", recursive=True)),
    ),
    "ModelCheckpoint(monitor, save_best_only)": (
        lambda to: keras.callbacks.ModelCheckpoint(
            filepath=to + "/{epoch}.h5", monitor="val_loss", save_best_only=True, save_weights_only=True
        ),
        lambda to, _: [int(name[0]) for name in _files(to)],
    ),
    "ModelCheckpoint(include_optimizer)": (
        lambda to: keras.callbacks.ModelCheckpoint(filepath=to + "/model.h5", include_optimizer=False),
        lambda to, _: keras.models.load_model(to + "/model.h5").optimizer is None,
    ),
    "EarlyStopping(restore_best_weights)": (
        lambda to: keras.callbacks.EarlyStopping("loss", min_delta=1e6, restore_best_weights=True),
        lambda _, model: (model.history.epoch, model.get_weights()),
    ),
    "ReduceLROnPlateau(patience)": (
        lambda to: keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=0, min_delta=100.0),
        lambda _, model: model.optimizer.learning_rate.numpy(),
    ),
}


def _model():
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.layers.Conv1D(filters=4, kernel_size=3, input_shape=(8, 3), activation="relu"),
            keras.layers.MaxPooling1D(pool_size=2),
            keras.layers.Flatten(),
            keras.layers.Dense(
                3,
                kernel_initializer=keras.initializers.RandomUniform(minval=-0.5, maxval=0.5, seed=1),
                kernel_constraint=keras.constraints.MaxNorm(max_value=0.3),
            ),
            keras.layers.Dense(1, kernel_initializer="ones"),
        ]
    )


def _trained(optimizer, loss, **fit):
    model = _model()
    options = {"steps_per_execution": 4} if tf.distribute.has_strategy() else {}
    model.compile(optimizer(), loss, **options)
    model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0, **fit)
    return model


def _on_both(look):
    """What `look` gives of stock Keras on the CPU, and of an IPU."""
    configure()
    stock = look()
    with strategy().scope():
        return stock, look()


@pytest.mark.parametrize(("optimizer", "loss", "fit"), TRAININGS.values(), ids=TRAININGS)
def test_a_keyword_of_training(optimizer, loss, fit):
    def look():
        model = _trained(optimizer, loss, **fit)
        return [model.history.history["loss"], *model.get_weights()]

    for expected, found in zip(*_on_both(look)):
        assert_close(found, expected)


@pytest.mark.parametrize(("callback", "left"), CALLBACKS.values(), ids=CALLBACKS)
def test_a_keyword_of_a_callback(callback, left, tmp_path):
    def look():
        folder = str(tmp_path / ("ipu" if tf.distribute.has_strategy() else "cpu"))
        os.mkdir(folder)
        model = _trained(lambda: SGD(0.01), "mse", validation_data=(X, Y), callbacks=[callback(folder)])
        return left(folder, model)

    expected, found = _on_both(look)
    tf.nest.map_structure(lambda one, other: np.testing.assert_allclose(one, other, 1e-4), found, expected)
