"""Random programs with sizes that follow from values: masks, ranges, repetitions, random shapes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from soak import modes
from soak.modes import Finding, Order
from tf_ipu_shim import ipu

# A number of elements, at least 1 and at most 5, from a vector of numbers.
_COUNTS: dict[str, Callable[[Any], Any]] = {
    "rows of a mask": lambda x: tf.shape(tf.boolean_mask(x, x > 1.0))[0],
    "places": lambda x: tf.shape(tf.where(x > 2.0), out_type=tf.int32)[0],
    "nonzero": lambda x: tf.math.count_nonzero(x > 1.0, dtype=tf.int32),
    "an element": lambda x: tf.cast(x[1], tf.int32),
    "largest": lambda x: tf.cast(tf.reduce_max(x), tf.int32) - 1,
    "different ones": lambda x: tf.shape(tf.unique(x)[0])[0],
    "a shape": lambda x: tf.shape(x)[0] - 1,
}
_SIZED: dict[str, Callable[[Any, Any], Any]] = {
    "range": lambda x, n: tf.cast(tf.range(n), tf.float32),
    "zeros": lambda x, n: tf.zeros([n]) + x[0],
    "fill": lambda x, n: tf.fill([n, 2], x[1]),
    "first": lambda x, n: x[:n],
    "rest": lambda x, n: x[n:],
    "from the end": lambda x, n: x[-n:],
    "slice": lambda x, n: tf.slice(x, [1], [n - 1]),
    "tile": lambda x, n: tf.tile(x, [n]),
    "broadcast": lambda x, n: tf.broadcast_to(x, [n, 6]),
    "one hot": lambda x, n: tf.one_hot([0, 1], n),
    "pad": lambda x, n: tf.pad(x, [[0, n]]),
    "repeat": lambda x, n: tf.repeat(x, n),
    "sequence mask": lambda x, n: tf.cast(tf.sequence_mask([1, 2], n), tf.float32),
    "linspace": lambda x, n: tf.linspace(0.0, tf.cast(n, tf.float32) - 1.0, n),
    "eye": lambda x, n: tf.eye(n),
    "reshape": lambda x, n: tf.reshape(tf.tile(x, [n]), [n, 6]),
    "mask": lambda x, n: tf.boolean_mask(x, x > tf.cast(n, tf.float32)),
    "gather of a range": lambda x, n: tf.gather(x, tf.range(n)),
    "top": lambda x, n: tf.math.top_k(x, n).values,
    "random": lambda x, n: tf.ones_like(tf.random.uniform([n])),
    "random integers": lambda x, n: tf.zeros_like(tf.random.uniform([2, n], maxval=3, dtype=tf.int32)),
    "stateless": lambda x, n: tf.ones_like(tf.random.stateless_normal([n], [1, 2])),
    "partition": lambda x, n: tf.dynamic_partition(x, tf.cast(x > tf.cast(n, tf.float32), tf.int32), 2)[1],
    "loop": lambda x, n: tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 0.5 + x), (tf.constant(0), x))[1],
    "split": lambda x, n: tf.split(x, tf.stack([n, 6 - n]), num=2)[0],
}
_RESULTS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda made: made,
    "sum": lambda made: tf.reduce_sum(tf.cast(made, tf.float32)),
    "its shape": tf.shape,
    "half": lambda made: tf.cast(made, tf.float32) * 0.5 + 1.0,
    "back": lambda made: (tf.cast(made, tf.float32) + 1024.0) - 1024.0,
    "chosen": lambda made: tf.where(tf.size(made) > 0, tf.cast(made, tf.float32), 0.0),
    "running total": lambda made: tf.cumsum(tf.cast(made, tf.float32)),
    "ones": lambda made: tf.ones_like(made) * 2,
    "last": lambda made: tf.reshape(tf.cast(made, tf.float32), [-1])[-1],
}
_AROUND = ("nothing", "nothing", "loop", "cond", "call", "gradient", "steps")
_STEPS = 4  # of a program that has several, which must be refused where one is


@dataclasses.dataclass(frozen=True)
class Program:
    """A tensor with a size from a value.

    Args:
        count: where the size comes from, a key of `_COUNTS`.
        sized: the op that uses it, a key of `_SIZED`.
        result: the result that is computed from it, a key of `_RESULTS`.
        around: the construct around it, a key of `_AROUND`.
        constant: whether the value is known when the program is built.
        elements: the elements of the vector.
        steps: the number of steps of a run.
        runs: how often it is run.
    """

    count: str
    sized: str
    result: str
    around: str
    constant: bool
    elements: tuple[float, ...]
    steps: int = 1
    runs: int = 2

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one."""
        elements = [*(float(number) for number in chance.sample([3, 1, 2, 4, 5, 2, 3], 5)), 5.0]
        if elements[1] == 5.0:
            elements[1] = 2.0
        return cls(
            chance.choice([*_COUNTS, *["an element", "largest", "nonzero", "a shape"] * 2]),
            chance.choice(list(_SIZED)),
            chance.choice(list(_RESULTS)),
            chance.choice(_AROUND),
            chance.random() < 0.2,
            tuple(elements),
        )

    @property
    def rounding(self) -> float:
        """Relative error of results: loops in loops halve so often that float32 rounds their sums."""
        return 1e-6 if self.sized == "loop" and self.around in ("loop", "steps") else 0.0

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """A number of elements that have been seen."""
        return {"seen": np.array(0, np.int32)}

    @property
    def inputs(self) -> list[np.ndarray]:
        """The vector."""
        return [np.array(self.elements, np.float32)]

    def build(self, order: Order, variables: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Builds it."""
        (x,) = inputs
        source = tf.constant(self.elements) if self.constant else x

        def made(value: Any) -> Any:
            return _RESULTS[self.result](_SIZED[self.sized](value, _COUNTS[self.count](source)))

        result = self._surrounded(made, x, order)
        order.write(lambda: variables["seen"].assign_add(tf.size(result)))
        return [result]

    def _surrounded(self, made: Callable[[Any], Any], x: Any, order: Order) -> Any:
        def sum_of(value: Any) -> Any:
            return tf.reduce_sum(tf.cast(made(value), tf.float32)) * 0.25 + value

        if self.around == "loop":
            return order.loop(3, lambda inner, index, value: sum_of(x) + value * 0.5, x)
        if self.around == "steps":
            if not tf.executing_eagerly():
                return order.done(ipu.loops.repeat(self.steps, lambda value: sum_of(value) * 0.5, [x]))
            for _ in range(self.steps):
                x = sum_of(x) * 0.5
            return x
        if self.around == "cond":
            return order.cond(x[0] > 1.0, [lambda inner: sum_of(x), lambda inner: x])
        if self.around == "call":
            return tf.function(made, autograph=False)(x)
        if self.around == "gradient":
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = tf.reduce_sum(tf.cast(made(x), tf.float32) * 2.0)
            found = tape.gradient(value, x)
            return value if found is None else tf.convert_to_tensor(found)
        return tf.identity(made(x))


def compare(program: Program, form: str) -> Finding:
    """Runs a program in all execution modes; one with steps also with another number of them.

    Args:
        program: the program.
        form: as `modes.compare` has it.
    """
    finding = modes.compare(program, form, program.rounding)
    if program.around != "steps" or finding.status == "different":
        return finding
    several = modes.compare(dataclasses.replace(program, steps=_STEPS), form, program.rounding)
    if several.status in (finding.status, "different"):
        return several
    return Finding("different", f"{form}, {program}: {finding}, with {_STEPS} steps {several}")
