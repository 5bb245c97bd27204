"""Computes the live bytes at every step of a program, and the lifetime of each value."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.machine.memory.buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block, Value
from tf_ipu_shim.machine.memory.liveness import order_of


class Lifetime(NamedTuple):
    """The lifetime of a value's memory; values written in place of others have none.

    Args:
        value: the value that it was made for, or that has overwritten one of another kind.
        first: number of the point at which it is created.
    """

    value: Value
    first: int
    last: int


class Point(NamedTuple):
    """Live bytes at one step, inner blocks included.

    Args:
        bytes: not-always-live ones alive then, including the enclosing blocks'.
    """

    block: Block
    step: int
    bytes: int


class Curve(NamedTuple):
    """Live memory of a block over time.

    Args:
        points: its steps in order.
    """

    points: list[Point]
    lifetimes: list[Lifetime]


def curve_of(block: Block) -> Curve:
    """Computes the curve of a block in the order chosen by `liveness.smallest`.

    The largest bytes of a point are the peak of `liveness`: both follow the same rules.

    Example:
        >>> block = Block("double")
        >>> x, y = block.add(Value(400, "x", "argument")), block.add(Value(400, "y", "temporary"))
        >>> block.run("x", (), (x,)); block.run("double", (x,), (y,))
        >>> [point.bytes for point in curve_of(block).points]
        [400, 800]
    """
    curve = Curve([], [])
    _run(block, 0, curve)
    return curve


def _run(block: Block, base: int, curve: Curve) -> None:
    buffers = Buffers(block)
    allocated_at: dict[int, int] = {}
    live_values: dict[int, Value] = {}  # by buffer, where that is not the value that it was made for
    seen = 0

    def end(buffer: int, last: int) -> None:
        value = live_values.pop(buffer, None) or block.values[buffers.value[buffer]]
        curve.lifetimes.append(Lifetime(value, allocated_at.pop(buffer), last))

    for index in order_of(block):
        step = block.steps[index]
        buffers.read_inputs(step)
        before = buffers.live
        allocated = buffers.allocate_outputs(step)
        point_index = len(curve.points)
        allocated_at.update(dict.fromkeys(allocated, point_index))
        for buffer, over in buffers.overwritten[seen:]:
            before_it = live_values.get(buffer, block.values[buffers.value[buffer]])
            if buffer in allocated_at and block.values[over].kind != before_it.kind:
                end(buffer, point_index - 1)
                allocated_at[buffer], live_values[buffer] = point_index, block.values[over]
        seen = len(buffers.overwritten)
        if step.inside:
            live_outside = base + (buffers.live if step.loops else before)  # a call's blocks make what it gives
            for inner in buffers.inside(step, allocated):
                _run(inner, live_outside, curve)
        curve.points.append(Point(block, index, base + buffers.live))
        for buffer in buffers.free(step, allocated):
            end(buffer, len(curve.points) - 1)
    for buffer in list(allocated_at):
        end(buffer, len(curve.points) - 1)
