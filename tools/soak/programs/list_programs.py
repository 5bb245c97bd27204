"""Random programs whose loops write TensorArrays, most of which grow."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from soak.modes import Order, compare

__all__ = ["Program", "compare"]

_PLACES: dict[str, Callable[[Any, int], Any]] = {
    "in turn": lambda index, rows: index,
    "from behind": lambda index, rows: rows - 1 - index,
    "with gaps": lambda index, rows: index * 2 + 1,
}
_USES = ("stack", "gather", "concat", "read the last", "size", "unstack", "sum of reads")


@dataclasses.dataclass(frozen=True)
class Program:
    """A loop that writes an array, and an op that uses the array.

    Args:
        size: the size that the array is made with; smaller than the rows that are written, it grows.
        rows: the rows that are written.
        width: the width of a row; 0 for scalars.
        place: where an iteration writes, a key of `_PLACES`.
        reads: whether an iteration reads what the one before wrote.
        known: whether the array knows the shape of its rows.
        uses: the op that uses it, a key of `_USES`.
        gradient: whether the result is its derivative.
        counted: whether the number of iterations is an argument.
        nested: whether all of it is in a loop of two iterations.
        runs: how often it is run.
    """

    size: int
    rows: int
    width: int
    place: str
    reads: bool
    known: bool
    uses: str
    gradient: bool
    counted: bool
    nested: bool
    runs: int = 2

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one; a third of them do not grow."""
        rows = chance.randint(1, 6)
        place = chance.choice(list(_PLACES))
        needed = 2 * rows if place == "with gaps" else rows
        return cls(
            size=chance.choice([0, 1, chance.randint(0, needed), needed]),
            rows=rows,
            width=chance.choice([0, 0, 1, 3]),
            place=place,
            reads=place == "in turn" and chance.random() < 0.4,
            known=place == "with gaps" or chance.random() < 0.7,
            uses=chance.choice(_USES),
            gradient=chance.random() < 0.3,
            counted=chance.random() < 0.3,
            nested=chance.random() < 0.2,
        )

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """One number that a run adds to."""
        return {"total": np.array(0.0, np.float32)}

    @property
    def inputs(self) -> list[np.ndarray]:
        """A row, and how many rows."""
        row = np.arange(2, 2 + self.width, dtype=np.float32) if self.width else np.float32(2.0)
        return [np.asarray(row), np.array(self.rows, np.int32)]

    def build(self, order: Order, variables: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Builds it."""
        row, count = inputs
        if self.gradient:
            with tf.GradientTape() as tape:
                tape.watch(row)
                value = self._result(order, row, count)
                loss = tf.reduce_sum(value * value) * 0.25
            found = tape.gradient(loss, row)
            result = tf.zeros_like(row) if found is None else found
        else:
            result = self._result(order, row, count)
        order.write(lambda: variables["total"].assign_add(tf.reduce_sum(result)))
        return [result]

    def _result(self, order: Order, row: Any, count: Any) -> Any:
        if not self.nested:
            return tf.identity(self._once(row, count))
        first = self._once(row, count)
        return order.loop(2, lambda inner, index, value: value * 0.5 + self._once(row, count), first)

    def _once(self, row: Any, count: Any) -> Any:
        shape = [self.width] if self.width else []
        rows = tf.TensorArray(
            tf.float32,
            size=self.size,
            dynamic_size=True,
            clear_after_read=False,
            element_shape=shape if self.known else None,
        )
        place = _PLACES[self.place]

        def step(index: Any, rows: Any) -> tuple[Any, Any]:
            value = row + tf.cast(index, tf.float32)
            if self.reads:
                value += tf.cond(index > 0, lambda: rows.read(tf.maximum(index - 1, 0)), lambda: tf.zeros_like(row))
            return index + 1, rows.write(place(index, self.rows), value)

        limit = count if self.counted else self.rows
        _, rows = tf.while_loop(lambda index, _: index < limit, step, (tf.constant(0), rows))
        return self._used(rows, row)

    def _used(self, rows: Any, row: Any) -> Any:
        last = self.rows * 2 - 1 if self.place == "with gaps" else self.rows - 1
        if self.uses == "read the last":
            return rows.read(last)
        if self.uses == "size":
            return row * tf.cast(rows.size(), tf.float32)
        if self.uses == "gather":
            return rows.gather([last, 0])
        if self.uses == "concat" and self.width:
            return rows.concat()
        if self.uses == "sum of reads":
            return rows.read(0) + rows.read(last) * 0.5
        return tf.reduce_sum(rows.stack(), axis=0) if self.uses == "unstack" else rows.stack()
