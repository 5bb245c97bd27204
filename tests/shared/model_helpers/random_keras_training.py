"""How random Keras models are trained: losses, metrics, weights of samples, own steps, callbacks."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from random_keras_blocks import as_outputs, keras

CLASSES = 3
LIMITS = {"float32": (2e-3, 2e-4), "mixed_float16": (2e-2, 2e-2)}
"""How far results may differ from stock Keras', by policy: relative to a result, and beside that."""
# A bias before batch normalization has a gradient of rounding errors, which a small epsilon would scale to full steps.
EPSILON = 1e-3


class WholeTables(keras.optimizers.SGD):
    """Takes the gradient of a table as a whole, as on an IPU; stock Keras clips lookups, and moves only their rows."""

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = [(tf.convert_to_tensor(gradient), variable) for gradient, variable in grads_and_vars]
        return super().apply_gradients(pairs, *args, **kwargs)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.5),
    "adam": lambda: keras.optimizers.Adam(0.01, epsilon=EPSILON),
    "legacy": lambda: keras.optimizers.legacy.RMSprop(0.01, epsilon=EPSILON),
    "clipped": lambda: keras.optimizers.SGD(0.05, clipnorm=0.1),
    "list": lambda: [keras.optimizers.SGD(0.05), keras.optimizers.Adam(0.01, epsilon=EPSILON)],
}

STOCK_OPTIMIZERS: dict[str, Callable[[], Any]] = {
    **OPTIMIZERS,
    "sgd": lambda: WholeTables(0.05, momentum=0.5),
    "clipped": lambda: WholeTables(0.05, clipnorm=0.1),
}
"""The same for stock Keras."""


def _soft_excess(y: Any, predicted: Any) -> Any:
    return tf.reduce_mean(tf.math.softplus(2.0 * (predicted - tf.cast(y, predicted.dtype))), axis=-1)


def _spread(y: Any, predicted: Any) -> Any:
    return tf.reduce_max(predicted, axis=-1) - tf.reduce_min(predicted, axis=-1)


class _Farthest(keras.metrics.Metric):
    """The largest absolute value of an output."""

    def __init__(self, name: str = "farthest") -> None:
        super().__init__(name=name)
        self.value = self.add_weight(name="value", initializer="zeros")

    def update_state(self, y: Any, predicted: Any, sample_weight: Any = None) -> None:
        self.value.assign(tf.maximum(self.value, tf.cast(tf.reduce_max(tf.abs(predicted)), self.value.dtype)))

    def result(self) -> Any:
        return tf.identity(self.value)


LOSSES: dict[str, dict[str, Callable[[], Any]]] = {
    "regression": {
        "mse": lambda: "mse",
        "huber": lambda: keras.losses.Huber(0.5),
        "own": lambda: _soft_excess,
    },
    "binary": {"crossentropy": lambda: keras.losses.BinaryCrossentropy(from_logits=True)},
    "classes": {"crossentropy": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
}
METRICS: dict[str, dict[str, Callable[[], Any]]] = {
    "regression": {
        "mae": lambda: "mae",
        "rmse": lambda: keras.metrics.RootMeanSquaredError(),
        "farthest": lambda: _Farthest(),
    },
    "binary": {
        "accuracy": lambda: keras.metrics.BinaryAccuracy(threshold=0.0),
        "mean": lambda: keras.metrics.BinaryCrossentropy(from_logits=True),
        "farthest": lambda: _Farthest(),
    },
    "classes": {
        "accuracy": lambda: "accuracy",
        "best": lambda: keras.metrics.SparseTopKCategoricalAccuracy(2),
        "spread": lambda: _spread,
    },
}
_COUNTS: dict[tuple[str, str], tuple[str, Callable[[Any, Any], Any]]] = {
    ("binary", "accuracy"): (
        "binary_accuracy",
        lambda y, predicted: keras.metrics.binary_accuracy(y, predicted, threshold=0.0),
    ),
    ("classes", "accuracy"): ("accuracy", keras.metrics.sparse_categorical_accuracy),
    ("classes", "best"): (
        "sparse_top_k_categorical_accuracy",
        lambda y, predicted: keras.metrics.sparse_top_k_categorical_accuracy(y, predicted, k=2),
    ),
}
"""Metrics that count samples, by task and key of `METRICS`: the name of each and what it says of a sample."""
CALLBACKS = ("record", "schedule", "stop", "plateau", "damp", "lambda")


class _Recorder(keras.callbacks.Callback):
    """Keeps the steps and logs of all calls."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__()
        self.found = found

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.found.append((epoch, list((logs or {}).values())))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.found.append((batch, list((logs or {}).values())))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.found.append((batch, list((logs or {}).values())))


class _Damp(keras.callbacks.Callback):
    """Changes weights between epochs."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.set_weights([0.9 * one for one in self.model.get_weights()])


def callbacks(kinds: tuple[str, ...], found: list[Any]) -> list[Any]:
    """Callbacks of kinds of `CALLBACKS`; what they see is appended to `found`."""
    make: dict[str, Callable[[], Any]] = {
        "record": lambda: _Recorder(found),
        "schedule": lambda: keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch else rate),
        "stop": lambda: keras.callbacks.EarlyStopping("loss", min_delta=0.05, patience=1, restore_best_weights=True),
        "plateau": lambda: keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.1),
        "damp": _Damp,
        "lambda": lambda: keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: found.append(epoch)),
    }
    return [make[kind]() for kind in kinds]


def labels(task: str, base: np.ndarray) -> np.ndarray:
    """Targets of a task, computed from inputs with a last axis of one."""
    if task == "regression":
        return np.sin(base)
    if task == "binary":
        return (base > 0).astype(np.float32)
    return np.digitize(base[..., 0], [-0.5, 0.5]).astype(np.int32)


def compiling(source: random.Random, task: str, outputs: str) -> dict[str, Any]:
    """Draws losses, their weights and metrics as keys of `LOSSES` and `METRICS`, arranged as `compile` takes them."""
    heads = 1 if outputs == "one" else 2
    losses = [source.choice(list(LOSSES[task])) for _ in range(heads)]
    metrics = [source.sample(list(METRICS[task]), k=source.randint(0, 2)) for _ in range(heads)]
    weighted = [source.sample(list(METRICS[task])[:2], k=source.randint(0, 1)) for _ in range(heads)]
    drawn = {"loss": losses, "metrics": metrics, "weighted_metrics": weighted}
    if heads > 1 and source.random() < 0.5:
        drawn["loss_weights"] = [source.choice([0.3, 1.0, 2.5]) for _ in range(heads)]
    return drawn


def has_counts(task: str, drawn: Mapping[str, Any]) -> bool:
    """Whether a metric that `compiling` drew counts samples."""
    kinds = [kind for of_heads in (drawn["metrics"], drawn["weighted_metrics"]) for kinds in of_heads for kind in kinds]
    return any((task, kind) in _COUNTS for kind in kinds)


def counting(task: str, moves: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    """The metrics of a task; those that count samples see each output moved towards the sample's label.

    Args:
        task: a key of `METRICS`.
        moves: how far outputs are moved; away from the label where it is negative.
    """

    def moved(count: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def of_moved(y: Any, predicted: Any) -> Any:
            labels = y if task == "binary" else tf.one_hot(tf.reshape(tf.cast(y, tf.int32), [-1]), CLASSES)
            towards = 2.0 * tf.cast(labels, predicted.dtype) - 1.0
            return count(y, predicted + towards * moves(predicted))

        return of_moved

    found = dict(METRICS[task])
    for (of, kind), (name, count) in _COUNTS.items():
        if of == task:
            found[kind] = functools.partial(keras.metrics.MeanMetricWrapper, moved(count), name)
    return found


def compile_options(
    task: str, outputs: str, drawn: dict[str, Any], metrics: Mapping[str, Callable[[], Any]]
) -> dict[str, Any]:
    """Arguments of `compile`, made of what `compiling` drew and of metrics by kind."""
    per_head: dict[str, list[Any]] = {
        "loss": [LOSSES[task][one]() for one in drawn["loss"]],
        "metrics": [[metrics[one]() for one in of_head] for of_head in drawn["metrics"]],
        "weighted_metrics": [[metrics[one]() for one in of_head] for of_head in drawn["weighted_metrics"]],
    }
    if "loss_weights" in drawn:
        per_head["loss_weights"] = drawn["loss_weights"]
    return {name: as_outputs(outputs, values) for name, values in per_head.items()}


class _TrainStep:
    """Trains with the optimizers of `compile`: one, or one for the heads and one for everything else."""

    def train_step(self: Any, data: Any) -> Any:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        optimizers = self.optimizer if isinstance(self.optimizer, (list, tuple)) else [self.optimizer]
        scales = hasattr(optimizers[0], "get_scaled_loss")
        with tf.GradientTape(persistent=True) as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(x, y, predicted, weight)
            scaled = optimizers[0].get_scaled_loss(loss) if scales else loss
        for optimizer, variables in zip(optimizers, self._parts(len(optimizers))):
            gradients = tape.gradient(scaled, variables)
            gradients = optimizer.get_unscaled_gradients(gradients) if scales else gradients
            optimizer.apply_gradients(zip(gradients, variables))
        return self.compute_metrics(x, y, predicted, weight)

    def _parts(self: Any, number: int) -> list[Any]:
        if number == 1:
            return [self.trainable_variables]
        heads = [variable for head in self.heads for variable in head.trainable_variables]
        others = [one for one in self.trainable_variables if all(one is not head for head in heads)]
        return [others or heads, heads]


class _TestStep:
    """Evaluates with a metric of its own beside those of `compile`."""

    def test_step(self: Any, data: Any) -> Any:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        predicted = self(x, training=False)
        self.compute_loss(x, y, predicted, weight)
        results = self.compute_metrics(x, y, predicted, weight)
        return {**results, "least": tf.reduce_min(tf.nest.flatten(predicted)[0])}


class _PredictStep:
    """Predicts a structure that is not the model's outputs."""

    def predict_step(self: Any, data: Any) -> Any:
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        first = tf.nest.flatten(self(x, training=False))[0]
        return {"scores": first, "shifted": (first + 1.0, -first)}


STEPS = {"train": _TrainStep, "test": _TestStep, "predict": _PredictStep}


def with_steps(base: type, kinds: tuple[str, ...]) -> type:
    """A class of models with steps of its own, of kinds of `STEPS`."""
    return type("Own", (*(STEPS[kind] for kind in kinds), base), {}) if kinds else base
