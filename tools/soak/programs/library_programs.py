"""Random programs of Graphcore's own ops, with gradients, against the same steps in stock TensorFlow's ops."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from soak import modes
from tf_ipu_shim import ipu

_ROWS, _COLUMNS = 4, 6
_ROUNDING = 2e-4  # of chains of functions and their gradients in float32
_AROUND = ("nothing", "nothing", "loop", "cond", "function", "outlined function")
_IDS = [2, 0, 0, 3]
_SEGMENTS = [0, 0, 2, 3]
_LEVELS = [-1.0, 0.0, 0.5]
_WEIGHTS = np.arange(_COLUMNS * _COLUMNS, dtype=np.float32).reshape(_COLUMNS, _COLUMNS) % 7 / 8 - 0.375
_FILTER = np.arange(9, dtype=np.float32).reshape(3, 3, 1, 1) / 16 - 0.25
_EPSILON = 0.01


def _in_groups(x: Any, groups: int, strided: bool, ours: bool) -> Any:
    """Normalises two samples."""
    samples = tf.reshape(x, [2, _ROWS // 2, _COLUMNS])
    if ours:
        made = ipu.normalization_ops.group_norm(
            samples, groups, center=False, scale=False, epsilon=_EPSILON, strided_channel_grouping=strided
        )
        return tf.reshape(made, x.shape)
    split = [groups, _COLUMNS // groups]
    apart = tf.reshape(samples, [2, _ROWS // 2, *(split[::-1] if strided else split)])
    mean, variance = tf.nn.moments(apart, [1, 2 if strided else 3], keepdims=True)
    return tf.reshape((apart - mean) / tf.sqrt(variance + _EPSILON), x.shape)


def _grouped(groups: int, strided: bool) -> Callable[[Any, bool], Any]:
    return lambda x, ours: _in_groups(x, groups, strided, ours)


def _normalised(kind: str, groups: int) -> Callable[[Any, bool], Any]:
    def step(x: Any, ours: bool) -> Any:
        if not ours:
            return _in_groups(x, groups, False, ours)
        samples = tf.reshape(x, [2, _ROWS // 2, _COLUMNS])
        normalise = getattr(ipu.normalization_ops, kind)
        return tf.reshape(normalise(samples, center=False, scale=False, epsilon=_EPSILON), x.shape)

    return step


def _multiplied(factor: int, dimension: str) -> Callable[[Any, bool], Any]:
    def step(x: Any, ours: bool) -> Any:
        weights = tf.constant(_WEIGHTS)
        return ipu.math_ops.serialized_matmul(x, weights, factor, dimension) if ours else tf.matmul(x, weights)

    return step


def _sliced(zero_unused: bool) -> Callable[[Any, bool], Any]:
    """Row 3 to 0, rows 1 and 2 to 2 and 3."""

    def step(x: Any, ours: bool) -> Any:
        if ours:
            return ipu.slicing_ops.sequence_slice(x, 2.0 * x, [1, 2], [3, 1], [0, 2], zero_unused)
        return tf.stack([2.0 * x[3], tf.zeros_like(x[1]) if zero_unused else x[1], 2.0 * x[1], 2.0 * x[2]])

    return step


def _packed(x: Any, ours: bool) -> Any:
    if ours:
        return ipu.slicing_ops.sequence_slice_pack(x, x[:3] + 1.0, [2, 1], [2, 0], False)
    return tf.stack([x[2] + 1.0, x[1], x[0] + 1.0, x[1] + 1.0])


def _unpacked(x: Any, ours: bool) -> Any:
    if ours:
        return ipu.slicing_ops.sequence_slice_unpack(x, [2, 1], [2, 0], _ROWS)
    return tf.stack([x[2], x[3], x[0], tf.zeros_like(x[0])])


def _looked_up(factor: int) -> Callable[[Any, bool], Any]:
    def step(x: Any, ours: bool) -> Any:
        return ipu.embedding_ops.embedding_lookup(x, _IDS, factor) if ours else tf.gather(x, _IDS)

    return step


def _counted(x: Any, ours: bool) -> Any:
    values = tf.reshape(x, [-1])
    if ours:
        counts = ipu.statistics_ops.histogram(values, _LEVELS)
    else:
        places = tf.reduce_sum(tf.cast(values[:, None] >= tf.constant(_LEVELS), tf.int32), 1)
        counts = tf.math.bincount(places, minlength=len(_LEVELS) + 1, dtype=tf.float32)
    return x + tf.reduce_sum(tf.stop_gradient(counts) * [0.0, 1.0, 2.0, 3.0]) / 64.0


def _image(x: Any, ours: bool) -> Any:
    pixels, offsets, scales = tf.reshape(x, [-1, 3]), tf.constant([0.5, 0.0, -0.5]), tf.constant([1.0, 0.5, 2.0])
    if ours:
        made = ipu.image_ops.normalise_image(pixels, offsets, scales, scale=0.5)
    else:
        made = tf.pad((pixels * 0.5 - offsets) * scales, [[0, 0], [0, 1]])
    return tf.reshape(made[:, :3] + made[:, 3:], x.shape)


def _convolved(x: Any, ours: bool) -> Any:
    def both(image: Any) -> Any:
        first = tf.nn.conv2d(image, tf.constant(_FILTER), 1, "SAME")
        return first, tf.nn.conv2d(image, tf.constant(_FILTER[::-1].copy()), 1, "SAME")

    first, second = (ipu.nn_ops.multi_conv(both) if ours else both)(tf.reshape(x, [1, _ROWS, _COLUMNS, 1]))
    return tf.reshape(first - 2.0 * second, x.shape)


def _function(ours: Callable[[Any], Any], stock: Callable[[Any], Any]) -> Callable[[Any, bool], Any]:
    return lambda x, is_ours: (ours if is_ours else stock)(x)


STEPS: dict[str, Callable[[Any, bool], Any]] = {
    "gelu": _function(lambda x: ipu.nn_ops.gelu(x), lambda x: tf.nn.gelu(x, approximate=True)),
    "gelu by erf": _function(lambda x: ipu.nn_ops.gelu(x, approximate=False), tf.nn.gelu),
    "hard sigmoid": _function(lambda x: ipu.nn_ops.hard_sigmoid(x), lambda x: tf.clip_by_value(0.2 * x + 0.5, 0, 1)),
    "swish": _function(lambda x: ipu.nn_ops.swish(x), lambda x: x * tf.sigmoid(x)),
    "softmax": _function(lambda x: ipu.nn_ops.softmax(x), tf.nn.softmax),
    **{f"{n} groups": _grouped(n, False) for n in (2, 3)},
    **{f"{n} strided groups": _grouped(n, True) for n in (2, 3)},
    "layer norm": _normalised("layer_norm", 1),
    "instance norm": _normalised("instance_norm", _COLUMNS),
    "serialized columns of a": _multiplied(2, "a_columns"),
    "serialized rows of b": _multiplied(3, "b_rows"),
    "serialized sum": _multiplied(2, "a_rows_b_columns"),
    "segment sum": _function(
        lambda x: ipu.math_ops.segment_sum(x, _SEGMENTS, _ROWS),
        lambda x: tf.math.unsorted_segment_sum(x, _SEGMENTS, _ROWS),
    ),
    "slices": _sliced(False),
    "slices and zeros": _sliced(True),
    "packed slices": _packed,
    "unpacked slices": _unpacked,
    "lookup": _looked_up(1),
    "lookup in two parts": _looked_up(2),
    "histogram": _counted,
    "image": _image,
    "convolutions": _convolved,
    "sum over replicas": _function(lambda x: ipu.cross_replica_ops.cross_replica_sum(x), tf.identity),
    "mean over replicas": _function(lambda x: ipu.cross_replica_ops.cross_replica_mean(x), tf.identity),
    "remap": _function(lambda x: ipu.internal_ops.remap(x), tf.identity),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """Ops in turn on one matrix.

    Args:
        steps: keys of `STEPS`, each with the construct around it, one of `_AROUND`.
        has_gradient: whether the gradient is a result, too.
        seed: of the matrix.
        ours: Graphcore's ops; else the stock ones.
        runs: how often it is run.
    """

    steps: tuple[tuple[str, str], ...]
    has_gradient: bool
    seed: int
    ours: bool = True
    runs: int = 2

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one."""
        steps = tuple((chance.choice(list(STEPS)), chance.choice(_AROUND)) for _ in range(chance.randint(1, 4)))
        return cls(steps, chance.random() < 0.6, chance.randint(0, 2**31))

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """First values of its variables: what a run adds to the matrix."""
        return {"state": np.zeros([_ROWS, _COLUMNS], np.float32)}

    @property
    def inputs(self) -> list[np.ndarray]:
        """The matrix."""
        return [np.random.default_rng(self.seed).normal(size=[_ROWS, _COLUMNS]).astype(np.float32)]

    def build(self, order: modes.Order, variables: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Builds it."""
        x = tf.identity(inputs[0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = x + order.read(variables["state"])
            for name, around in self.steps:
                made = self._surrounded(name, around, made, x[0, 0] > 0.0)
            loss = tf.reduce_sum(made * tf.range(1.0, _COLUMNS + 1))
        gradients = [tape.gradient(loss, x)] if self.has_gradient else []
        order.write(lambda: variables["state"].assign(made / 8.0))
        return [made, *gradients]

    def _surrounded(self, name: str, around: str, x: Any, is_first: Any) -> Any:
        def step(value: Any) -> Any:
            return STEPS[name](value, self.ours)

        if around == "loop":
            return tf.while_loop(
                lambda i, _: i < 2, lambda i, value: (i + 1, step(value)), (0, x), maximum_iterations=2
            )[1]
        if around == "cond":
            return tf.cond(is_first, lambda: step(x), lambda: step(-x))
        if around == "function":
            return tf.function(step, autograph=False)(x)
        if around == "outlined function" and self.ours:
            return ipu.functional_ops.outlined_function(step)(x)
        return step(x)


def compare(program: Program, form: str) -> modes.Finding:
    """Runs a program in all execution modes, and as stock ops on the CPU.

    Args:
        program: the program.
        form: one of `modes.FORMS`.
    """
    return modes.compare(program, form, _ROUNDING, dataclasses.replace(program, ours=False))
