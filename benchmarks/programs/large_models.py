"""Large Keras models from public descriptions, and a side that trains one in its own process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.lowering_stopwatch import Stopwatch
from benchmarks.programs import forms
from benchmarks.worker import peak_memory


@dataclasses.dataclass(frozen=True)
class Task:
    """Something large to train.

    Args:
        name: the name for the table.
        model: a function from Keras and a size to the model.
        optimizer: a function from Keras to the optimizer that trains it.
        size: the arguments of the model: its width and layers, or the side of an image.
        quick_size: the same for runs that only compare outputs.
        batch: samples of a mini-batch.
        classes: how many labels there are.
    """

    name: str
    model: Callable[[Any, tuple[int, ...]], Any]
    optimizer: Callable[[Any], Any]
    size: tuple[int, ...]
    quick_size: tuple[int, ...]
    batch: int
    classes: int


WORDS, PLACES = 30522, 128


def bert(keras: Any, size: tuple[int, ...]) -> Any:
    """Returns an encoder as of Devlin et al. 2018 (BERT), with its pooler and a classifier of two classes.

    Args:
        keras: Keras 2.
        size: width, layers, attention heads.
    """
    width, depth, heads = size
    layers = keras.layers

    class Places(layers.Layer):  # type: ignore[name-defined]
        """Adds a learnt vector for each position of the sequence."""

        def build(self, shape: Any) -> None:
            self.table = self.add_weight("table", (PLACES, width), initializer="random_normal")

        def call(self, x: Any) -> Any:
            return x + self.table

    words = keras.Input((PLACES,), dtype="int32")
    x = layers.LayerNormalization(epsilon=1e-12)(Places()(layers.Embedding(WORDS, width)(words)))
    for _ in range(depth):
        attended = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization(epsilon=1e-12)(x + attended)
        inner = layers.Dense(4 * width, activation="gelu")(x)
        x = layers.LayerNormalization(epsilon=1e-12)(x + layers.Dense(width)(inner))
    pooled = layers.Dense(width, activation="tanh")(x[:, 0])
    return keras.Model(words, layers.Dense(2)(pooled))


def resnet(keras: Any, size: tuple[int, ...]) -> Any:
    """ResNet-50 of He et al. 2015, as Keras has it.

    Args:
        keras: Keras 2.
        size: the side of an image.
    """
    return keras.applications.ResNet50(weights=None, input_shape=(*size, *size, 3), classifier_activation=None)


def _adam(keras: Any) -> Any:
    return keras.optimizers.legacy.Adam(1e-5)


def _momentum(keras: Any) -> Any:
    return keras.optimizers.legacy.SGD(1e-5, 0.9)  # what differs in the last digit must not grow


TASKS = {
    "bert": Task("BERT-Base, 2 sequences of 128", bert, _adam, (768, 12, 12), (32, 2, 2), 2, 2),
    "resnet": Task("ResNet-50, 4 images of 224", resnet, _momentum, (224,), (32,), 4, 1000),
}


class Training:
    """Training with the same mini-batch again and again, as a side.

    A call's outputs are one array. It contains the loss, the seconds until the first call, those of lowering and memory
    plan, and the peak bytes of the process.

    Args:
        ipu: whether it trains on the IPU.
    """

    def __init__(self, ipu: bool) -> None:
        from tf_ipu_shim import keras2

        keras, task = keras2.public_module(), TASKS[os.environ["BENCHMARK_TASK"]]
        quick = bool(os.environ.get("BENCHMARK_QUICK"))
        self._stopwatch = Stopwatch(1, runs=True) if ipu else None
        self._scope: Callable[[], Any] = contextlib.nullcontext
        if ipu:
            from tf_ipu_shim.ipu import ipu_strategy

            self._scope = ipu_strategy.IPUStrategy().scope
        keras.utils.set_random_seed(1)
        with self._scope():
            self._model = task.model(keras, task.quick_size if quick else task.size)
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self._model.compile(task.optimizer(keras), loss)
        generator = np.random.default_rng(0)
        shape = (task.batch, *self._model.input_shape[1:])
        words = self._model.inputs[0].dtype.is_integer
        x = generator.integers(0, WORDS, shape, np.int32) if words else generator.random(shape, np.float32)
        self._data = x, generator.integers(0, task.classes, task.batch).astype(np.int32)

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        return [[self._figures()] for _ in range(calls)]

    def seconds(self, calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            self._step()
        return time.perf_counter() - start

    def _figures(self) -> np.ndarray:
        start = time.perf_counter()
        loss = self._step()
        seconds = time.perf_counter() - start
        lowering = self._stopwatch.total if self._stopwatch is not None else 0.0
        return np.array([loss, seconds, lowering, peak_memory()])

    def _step(self) -> float:
        with self._scope():
            history = self._model.fit(*self._data, batch_size=len(self._data[0]), shuffle=False, verbose=0)
        return history.history["loss"][0]


def ipu_process() -> Training:
    """Returns the IPU's side, in its own process."""
    forms.configure()
    return Training(ipu=True)


def stock_process() -> Training:
    """Returns the stock side, in its own process without an IPU."""
    return Training(ipu=False)
