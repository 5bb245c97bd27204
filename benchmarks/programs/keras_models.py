"""Keras models, each with data of its shape, and a side that trains one for an epoch."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import forms
from benchmarks.runner import OutputsDiffer
from benchmarks.worker import peak_memory


@dataclasses.dataclass(frozen=True)
class Task:
    """Something to train.

    Args:
        name: the name for the table.
        layers: a function from Keras and a width to the layers of a model with ten outputs.
        shape: the shape of a sample; of integers below `words` if that is set.
        batch: samples of a mini-batch.
        steps: mini-batches of an epoch.
        steps_per_execution: mini-batches of an execution.
        width: the arguments of the layers.
        words: number of words; 0 for samples of floats.
    """

    name: str
    layers: Callable[[Any, int], list[Any]]
    shape: tuple[int, ...]
    batch: int = 32
    steps: int = 400
    steps_per_execution: int = 100
    width: int = 32
    words: int = 0

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Samples and their classes."""
        generator = np.random.default_rng(0)
        shape = (self.batch * self.steps, *self.shape)
        x = generator.integers(0, self.words, shape) if self.words else generator.random(shape, np.float32)
        return x.astype(np.int32 if self.words else np.float32), generator.integers(0, 10, len(x)).astype(np.int32)


def _mlp(keras: Any, width: int) -> list[Any]:
    return [keras.layers.Flatten(), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(10)]


def _cnn(keras: Any, width: int) -> list[Any]:
    layers = keras.layers
    return [
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(width, activation="relu"),
        layers.Dense(10),
    ]


def _transformer(keras: Any, width: int) -> list[Any]:
    layers = keras.layers

    class Block(layers.Layer):  # type: ignore[name-defined]
        """Attention and a feed-forward network, each with its residual and norm."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = layers.MultiHeadAttention(2, 16)
            self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
            self.inner, self.outer = layers.Dense(2 * width, activation="relu"), layers.Dense(32)

        def call(self, x: Any) -> Any:
            x = self.norms[0](x + self.attention(x, x))
            return self.norms[1](x + self.outer(self.inner(x)))

    return [layers.Embedding(1000, 32), Block(), Block(), layers.GlobalAveragePooling1D(), layers.Dense(10)]


def _lstm(keras: Any, width: int) -> list[Any]:
    layers = keras.layers
    return [
        layers.Embedding(1000, width),
        layers.LSTM(width, return_sequences=True),
        layers.LSTM(width),
        layers.Dense(10),
    ]


def _table(keras: Any, width: int) -> list[Any]:
    return [keras.layers.Embedding(_ROWS, width), keras.layers.Flatten(), keras.layers.Dense(10)]


_ROWS = 200_000
TASKS = (
    Task("MLP", _mlp, (28, 28, 1)),
    Task("CNN", _cnn, (28, 28, 1), steps=60, steps_per_execution=20),
    Task("transformer", _transformer, (32,), steps=60, steps_per_execution=20, words=1000),
    Task("LSTM", _lstm, (80,), steps=12, steps_per_execution=6, words=1000, width=128),
    Task("embedding table", _table, (4,), batch=64, words=_ROWS),
)


class Fit:
    """An epoch of `fit` as a side.

    Args:
        task: the model to train.
        ipu: whether on the IPU, in the scope of an `IPUStrategy`, or by stock Keras on the CPU.
        **options: the options of `compile`.
    """

    def __init__(self, task: Task, ipu: bool, **options: Any) -> None:
        from tf_ipu_shim import keras2

        keras = keras2.public_module()
        self._scope: Callable[[], Any] = contextlib.nullcontext
        if ipu:
            from tf_ipu_shim.ipu import ipu_strategy

            self._scope = ipu_strategy.IPUStrategy().scope
        self._task = task
        self._data = task.data()
        keras.utils.set_random_seed(1)
        with self._scope():
            self._model = keras.Sequential([keras.Input(task.shape), *task.layers(keras, task.width)])
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self._model.compile(keras.optimizers.SGD(0.05), loss, **options)

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        return [[np.asarray(self._epoch())] for _ in range(calls)]

    def seconds(self, calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            self._epoch()
        return time.perf_counter() - start

    def _epoch(self) -> float:
        with self._scope():
            history = self._model.fit(*self._data, batch_size=self._task.batch, shuffle=False, verbose=0)
        return history.history["loss"][0]


class Memory:
    """A process' peak memory as a side whose "seconds" are bytes.

    Args:
        ipu: whether it trains on the IPU.
    """

    def __init__(self, ipu: bool) -> None:
        task = next(task for task in TASKS if task.name == os.environ["BENCHMARK_TASK"])
        self._fit = Fit(task, ipu, steps_per_execution=task.steps_per_execution)

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        return self._fit.outputs(calls)

    def seconds(self, calls: int) -> float:
        return peak_memory()


def ipu_process() -> Memory:
    """Returns the IPU's side, in its own process."""
    forms.configure()
    return Memory(ipu=True)


def stock_process() -> Memory:
    """Returns the stock side, in its own process without an IPU."""
    return Memory(ipu=False)


def check_equal(task: Task, ours: np.ndarray, stock: np.ndarray) -> None:
    """Compares the losses of an epoch.

    Raises:
        OutputsDiffer: they are not the same.
    """
    if not np.allclose(ours, stock, rtol=1e-3):
        raise OutputsDiffer(f"{task.name}: the loss is {ours}, stock Keras has {stock}")
