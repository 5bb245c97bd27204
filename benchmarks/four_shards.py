"""Four shards, each with its weights, compared with the same model divided over logical CPU devices by `tf.device`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.programs import forms
from benchmarks.results import Result
from benchmarks.runner import Call, Settings, compare

TARGET = 1.0
SHARDS = 4
Layer = Callable[[Any, Any], Any]


def run(settings: Settings) -> Iterator[Result]:
    forms.configure(SHARDS, num_cpus=SHARDS)
    for size in (16,) if settings.quick else (16, 128, 384):
        for shape, cut in (("branches", branches), ("chain", chain)):
            made = values(size)
            ours = sharded(cut, made)
            for name, by_hand in (
                ("jit", _by_hand(cut, made, jit=True)),
                ("op by op", _by_hand(cut, made, jit=False)),
            ):
                yield compare(
                    f"{shape} of {size}, manual {name}", ours, by_hand, settings, ratio=TARGET, tolerance=1e-3
                )


def values(size: int) -> list[np.ndarray]:
    """Returns the input, then the weights of each shard."""
    generator = np.random.default_rng(0)
    return [(generator.standard_normal((size, size)) / np.sqrt(size)).astype(np.float32) for _ in range(SHARDS + 1)]


def _block(x: Any, weight: Any) -> Any:
    """Returns the computation of one shard."""
    import tensorflow as tf

    for _ in range(4):
        x = tf.tanh(tf.matmul(x, weight))
    return x


def branches(x: Any, weights: list[Any], on: Callable[[int], Any], block: Layer) -> Any:
    """Computes every shard on the same input; the last one sums the results."""
    import tensorflow as tf

    parts = []
    for shard, weight in enumerate(weights):
        with on(shard):
            parts.append(block(x, weight))
    with on(SHARDS - 1):
        return tf.reduce_sum(tf.add_n(parts), axis=1)


def chain(x: Any, weights: list[Any], on: Callable[[int], Any], block: Layer) -> Any:
    """Computes each shard on the result of the previous one."""
    import tensorflow as tf

    for shard, weight in enumerate(weights):
        with on(shard):
            x = block(x, weight)
    with on(SHARDS - 1):
        return tf.reduce_sum(x, axis=1)


def sharded(cut: Callable[..., Any], numbers: list[np.ndarray]) -> Call:
    """Our side."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    with tf.device(forms.IPU):
        weights = [tf.Variable(value) for value in numbers[1:]]

    @tf.function(autograph=False)
    def function(x: Any) -> Any:
        with ipu.scopes.ipu_scope(forms.IPU):
            return ipu.ipu_compiler.compile(lambda x: cut(x, weights, ipu.scopes.ipu_shard, _block), [x])

    x = tf.constant(numbers[0])
    return Call(lambda: function(x))


def _by_hand(cut: Callable[..., Any], numbers: list[np.ndarray], jit: bool) -> Call:
    import tensorflow as tf

    def on(shard: int) -> Any:
        return tf.device(f"/device:CPU:{shard}")

    weights = []
    for shard, value in enumerate(numbers[1:]):
        with on(shard):
            weights.append(tf.Variable(value))
    block = tf.function(_block, autograph=False, jit_compile=True) if jit else _block

    @tf.function(autograph=False)
    def function(x: Any) -> Any:
        return cut(x, weights, on, block)

    x = tf.constant(numbers[0])
    return Call(lambda: function(x))
