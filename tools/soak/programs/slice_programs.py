"""Random programs that assign slices of a variable computed from the same variable, in loops, branches and calls."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from soak.modes import Order, compare

__all__ = ["Program", "compare"]

_WRITES = (
    *["slice"] * 3,
    "slice_of_own",
    "columns",
    "whole",
    "scatter",
    "scatter_rows",
    "carry",
    "subtract",
)
_BLOCKS = ("loop", "cond", "call")
_BODIES = {"loop": 1, "cond": 2, "call": 1}


@dataclasses.dataclass(frozen=True)
class Statement:
    """One statement.

    Args:
        kind: one of the keys of `_WRITES` or `_BLOCKS`.
        numbers: the generator of its places and expressions.
        bodies: the bodies of blocks.
    """

    kind: str
    numbers: tuple[int, ...]
    bodies: tuple[tuple[Statement, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """A program over a vector or matrix `state`, another variable `other`, and a carried tensor.

    Args:
        shape: the shape of all of them.
        statements: the statements in order.
        runs: how often it is run.
    """

    shape: tuple[int, ...]
    statements: tuple[Statement, ...]
    runs: int

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one; half are a loop with a slice or two."""
        shape = chance.choice([(chance.randint(2, 9),), (chance.randint(2, 6), chance.randint(1, 4))])
        if chance.random() < 0.5:
            body = tuple(_shift(chance) for _ in range(chance.randint(1, 2)))
            return cls(shape, (Statement("loop", (chance.randint(2, 4),), (body,)),), 1)
        return cls(shape, _statements(chance, 2), chance.randint(1, 3))

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """Numbers that are all different."""
        count = int(np.prod(self.shape))
        values = np.arange(1, count + 1, dtype=np.float32).reshape(self.shape)
        return {"state": values, "other": -values / 4}

    @property
    def inputs(self) -> list[np.ndarray]:
        """The first values of the loop variables."""
        return [self.starts["state"] * 8 + 3]

    def build(self, order: Order, variables: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Builds it."""
        carried = _Builder(self.shape, variables).block(self.statements, order, inputs[0])
        return [carried, order.read(variables["state"])]


def _statements(chance: random.Random, depth: int) -> tuple[Statement, ...]:
    kinds = _WRITES + (_BLOCKS if depth else ())
    return tuple(_statement(chance, chance.choice(kinds), depth) for _ in range(chance.randint(1, 3)))


def _shift(chance: random.Random) -> Statement:
    """Most rows are written one or two rows behind, or before, their own place."""
    places = chance.choice([(1, 0), (1, 0), (2, 0), (2, 1), (0, 1)])
    kind = chance.choice(["slice", "slice", "columns"])
    operations = tuple(chance.choice(_ELEMENTWISE) for _ in range(3))
    return Statement(kind, (chance.randint(1, 2), *places, *operations))


def _statement(chance: random.Random, kind: str, depth: int) -> Statement:
    numbers = tuple(chance.randint(0, 40) for _ in range(3))
    simple = chance.random() < 0.5
    numbers += tuple(chance.choice(_ELEMENTWISE) if simple else chance.randint(0, 40) for _ in range(3))
    return Statement(kind, numbers, tuple(_statements(chance, depth - 1) for _ in range(_BODIES.get(kind, 0))))


class _Builder:
    """Builds statements.

    Args:
        shape: the shape of the variables.
        variables: the variables by name.
    """

    def __init__(self, shape: tuple[int, ...], variables: dict[str, Any]) -> None:
        self._shape = shape
        self._state, self._other = variables["state"], variables["other"]

    def block(self, statements: Sequence[Statement], order: Order, carried: Any) -> Any:
        """Runs statements in order; returns the carried tensor after them."""
        for statement in statements:
            if statement.kind in _BLOCKS:
                carried = getattr(self, f"_{statement.kind}")(statement, order, carried)
            elif statement.kind == "carry":
                carried = self._carry(statement.numbers, order, carried)
            else:
                getattr(self, f"_{statement.kind}")(statement.numbers, order, carried)
        return carried

    def _loop(self, statement: Statement, order: Order, carried: Any) -> Any:
        body = statement.bodies[0]
        return order.loop(statement.numbers[0] % 5, lambda inner, _, value: self.block(body, inner, value), carried)

    def _cond(self, statement: Statement, order: Order, carried: Any) -> Any:
        first = tf.reshape(order.read(self._state), [-1])[0]
        bodies = [lambda inner, body=body: self.block(body, inner, carried) for body in statement.bodies]
        return order.cond(first > float(statement.numbers[0] % 9 - 2), bodies)

    def _call(self, statement: Statement, order: Order, carried: Any) -> Any:
        def called(value: Any) -> Any:
            inner = order.inner()
            made = self.block(statement.bodies[0], inner, value)
            with inner.after_the_last():
                return tf.identity(made)

        with order.after_the_last():
            return order.done(tf.function(called, autograph=False)(carried))

    def _slice(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        target, source, count = _bounds(numbers, self._shape[0])
        value = self._expression(numbers, order, carried)[source : source + count]
        order.write(lambda: self._state[target : target + count].assign(value))

    def _slice_of_own(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        """Reads nothing but the slice."""
        target, source, count = _bounds(numbers, self._shape[0])
        value = order.read(self._state)[source : source + count]
        value = value * 0.5 if numbers[3] % 2 else value
        order.write(lambda: self._state[target : target + count].assign(value))

    def _columns(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        target, source, count = _bounds(numbers, self._shape[-1])
        value = self._expression(numbers, order, carried)[..., source : source + count]
        order.write(lambda: self._state[..., target : target + count].assign(value))

    def _whole(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        value = self._expression(numbers, order, carried)
        order.write(lambda: self._state.assign(value))

    def _scatter(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        rows = [[numbers[0] % self._shape[0]], *([[0]] if numbers[0] % self._shape[0] else [])]
        value = self._expression(numbers, order, carried)[: len(rows)]
        made = tf.tensor_scatter_nd_update(order.read(self._state), rows, value)
        order.write(lambda: self._state.assign(made))

    def _scatter_rows(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        rows = [[(numbers[0] + place) % self._shape[0]] for place in range(numbers[1] % 2 + 1)]
        value = self._expression(numbers, order, carried)[: len(rows)]
        order.write(lambda: self._state.scatter_nd_update(rows, value))

    def _subtract(self, numbers: Sequence[int], order: Order, carried: Any) -> None:
        value = self._expression(numbers, order, carried) * 0.25
        variable = self._other if numbers[0] % 2 else self._state
        order.write(lambda: variable.assign_sub(value))

    def _carry(self, numbers: Sequence[int], order: Order, carried: Any) -> Any:
        """Writes a part of the carried tensor from another part of it, as decoders and delay lines do."""
        target, source, count = _bounds(numbers, self._shape[0])
        value = self._expression(numbers, order, carried)[source : source + count]
        if numbers[0] % 2:
            return tf.concat([carried[:target], value, carried[target + count :]], axis=0)
        return tf.tensor_scatter_nd_update(carried, [[row] for row in range(target, target + count)], value)

    def _expression(self, numbers: Sequence[int], order: Order, carried: Any) -> Any:
        """Returns a value of the variables' shape."""
        leaves = [order.read(self._state), order.read(self._other), carried]
        made = leaves[0]
        for number in numbers[3:6]:
            made = _OPERATIONS[number % len(_OPERATIONS)](made, leaves[number // 3 % 3], number)
        return made


def _bounds(numbers: Sequence[int], size: int) -> tuple[int, int, int]:
    """Returns where target and source begin, and how many rows they have."""
    count = size - numbers[0] % min(size, 4)
    spare = size - count + 1
    return numbers[1] % spare, numbers[2] % spare, count


def _shifted(a: Any, b: Any, number: int) -> Any:
    return tf.concat([a[1:], b[:1]], axis=0)


def _gathered(a: Any, b: Any, number: int) -> Any:
    rows = int(a.shape[0])
    return tf.gather(a, [(row * 2 + number) % rows for row in range(rows)])


_OPERATIONS: tuple[Callable[[Any, Any, int], Any], ...] = (
    lambda a, b, number: a,
    lambda a, b, number: a * 0.5,
    lambda a, b, number: -a,
    lambda a, b, number: (a + b) * 0.5,
    lambda a, b, number: tf.maximum(a, b),
    lambda a, b, number: tf.reverse(a, [0]),
    lambda a, b, number: tf.roll(a, number, axis=0),
    lambda a, b, number: tf.where(a > b, a, b * 0.5),
    _shifted,
    _gathered,
)
_ELEMENTWISE = (0, 0, 1, 2, 3, 13, 4, 7)  # numbers of operations that XLA fuses with what follows
