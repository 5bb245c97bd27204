"""What is alive at every step of a program, and from when to when each value is: all that `liveness` peaks at."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.machine.memory.buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block, Value
from tf_ipu_shim.machine.memory.liveness import order_of


class Lifetime(NamedTuple):
    """A value's memory. One that is written in place of another of its kind has no memory of its own.

    Args:
        value: that it was made for, or that has overwritten one of another kind.
        first: number of the point at which it comes into being.
        last: number of the last point at which it is there.
    """

    value: Value
    first: int
    last: int


class Point(NamedTuple):
    """One step, those of inner blocks in their place.

    Args:
        block: that it is in.
        step: its number there.
        bytes: not-always-live ones that are there then, those of the blocks around included.
    """

    block: Block
    step: int
    bytes: int


class Curve(NamedTuple):
    """A block over time.

    Args:
        points: its steps in order.
        lifetimes: of what is not always there.
    """

    points: list[Point]
    lifetimes: list[Lifetime]


def curve_of(block: Block) -> Curve:
    """Runs through a block in the order that `liveness.smallest` chose.

    The most bytes of a point are that one's peak: both go by the same rules.

    Args:
        block: all that an IPU runs.

    Returns:
        What is there at each step. Takes a time in proportion to the steps.

    Example:
        >>> block = Block("double")
        >>> x, y = block.add(Value(400, "x", "argument")), block.add(Value(400, "y", "temporary"))
        >>> block.run("x", (), (x,)); block.run("double", (x,), (y,))
        >>> [point.bytes for point in curve_of(block).points]
        [400, 800]
    """
    found = Curve([], [])
    _run(block, 0, found)
    return found


def _run(block: Block, base: int, found: Curve) -> None:
    buffers = Buffers(block)
    made_at: dict[int, int] = {}
    held: dict[int, Value] = {}  # by buffer, where that is not the value that it was made for
    seen = 0

    def end(buffer: int, last: int) -> None:
        value = held.pop(buffer, None) or block.values[buffers.value[buffer]]
        found.lifetimes.append(Lifetime(value, made_at.pop(buffer), last))

    for number in order_of(block):
        step = block.steps[number]
        buffers.take(step)
        before = buffers.live
        made = buffers.give(step)
        here = len(found.points)
        made_at.update(dict.fromkeys(made, here))
        for buffer, over in buffers.overwritten[seen:]:
            before_it = held.get(buffer, block.values[buffers.value[buffer]])
            if buffer in made_at and block.values[over].kind != before_it.kind:
                end(buffer, here - 1)
                made_at[buffer], held[buffer] = here, block.values[over]
        seen = len(buffers.overwritten)
        if step.inside:
            around = base + (buffers.live if step.loops else before)  # a call's blocks make what it gives
            for inner in buffers.inside(step, made):
                _run(inner, around, found)
        found.points.append(Point(block, number, base + buffers.live))
        for buffer in buffers.free(step, made):
            end(buffer, len(found.points) - 1)
    for buffer in list(made_at):
        end(buffer, len(found.points) - 1)
