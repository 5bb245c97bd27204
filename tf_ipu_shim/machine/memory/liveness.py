"""Finds the live values at each step of a program and the step with the peak."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from tf_ipu_shim.machine.memory.buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block, Mode, Step, Value
from tf_ipu_shim.machine.memory.schedule import greedy


@dataclasses.dataclass(frozen=True, kw_only=True)
class Liveness:
    """The values that a block keeps alive.

    Args:
        always: values that are alive at every step, including inner blocks' values.
        peak_bytes: bytes of the others at the largest step.
        peak_step: the op that runs then; the innermost one for a loop, branch or call.
        at_peak: the values that are alive then, apart from `always`.
        order: numbers of the steps in the order in which they run; None keeps the block's order.
    """

    always: tuple[Value, ...]
    peak_bytes: int
    peak_step: str
    at_peak: tuple[Value, ...]
    order: tuple[int, ...] | None = None


def live(block: Block, order: Sequence[int] | None = None) -> Liveness:
    """Runs through a block's steps and finds the peak.

    A step needs its inputs and its results at the same time, and during it one of its inner blocks. Values passed to an
    inner block are counted outside, and its peak is added.

    Example:
        >>> block = Block("double")
        >>> x, y = block.add(Value(400, "x", "argument")), block.add(Value(400, "y", "temporary"))
        >>> block.run("x", (), (x,)); block.run("double", (x,), (y,))
        >>> live(block).peak_bytes
        800
    """
    run = _Run(block)
    for time, index in enumerate(range(len(block.steps)) if order is None else order):
        run.step(time, block.steps[index])
    return run.result(order)


class _Peak(NamedTuple):
    """The largest step so far.

    Args:
        inner: the inner block that runs then; None if its peak is not the larger one.
        with_outputs: whether the step's results are alive in addition.
        overwritten: values that had overwritten others by then.
    """

    bytes: int
    time: int
    inner: Liveness | None
    with_outputs: bool
    overwritten: int


class _Run:
    """Tracks live memory through a block's steps."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self.buffers = Buffers(block)
        self._made_at: dict[int, int] = {}
        self._freed_at: dict[int, int] = {}
        self.always = [value for value in block.values if value.mode is Mode.ALWAYS]
        self.peak = _Peak(0, -1, None, True, 0)

    def step(self, time: int, step: Step) -> None:
        buffers = self.buffers
        buffers.read_inputs(step)
        before = buffers.live
        allocated = buffers.allocate_outputs(step)
        inner, inside = None, 0
        if step.inside:
            blocks = [smallest(inner_block) for inner_block in buffers.inside(step, allocated)]
            self.always.extend(value for block in blocks for value in block.always)
            inner = max(blocks, key=_peak_bytes)
            inside = inner.peak_bytes
        for buffer in allocated:
            self._made_at[buffer] = time
        if step.loops or inner is None:
            needed = buffers.live + inside
            is_argument = True
        else:
            # A call's results are made inside of it, so they are not counted twice.
            is_argument = buffers.live > before + inside
            needed = max(buffers.live, before + inside)
            inner = None if is_argument else inner
        if needed > self.peak.bytes:
            self.peak = _Peak(needed, time, inner, is_argument, len(buffers.overwritten))
        for buffer in buffers.free(step, allocated):
            self._freed_at[buffer] = time

    def result(self, order: Sequence[int] | None) -> Liveness:
        """Returns the result once all steps have run in this order; None for the given order."""
        peak, steps = self.peak, self._block.steps
        step_indices = range(len(steps)) if order is None else order
        name = "" if peak.time < 0 else steps[step_indices[peak.time]].owner
        at_peak, inner = self._at_peak(), peak.inner
        if inner is not None:
            at_peak.extend(inner.at_peak)
            name = inner.peak_step or name
        return Liveness(
            always=tuple(self.always),
            peak_bytes=peak.bytes,
            peak_step=name,
            at_peak=tuple(at_peak),
            order=None if order is None else tuple(order),
        )

    def _at_peak(self) -> list[Value]:
        """Returns the values alive at the peak."""
        peak, buffers = self.peak, self.buffers
        current = {**dict(enumerate(buffers.value)), **dict(buffers.overwritten[: peak.overwritten])}
        return [
            self._block.values[current[buffer]]
            for buffer, time in self._made_at.items()
            if (time < peak.time or (time == peak.time and peak.with_outputs))
            and self._freed_at.get(buffer, peak.time) >= peak.time
        ]


def _peak_bytes(liveness: Liveness) -> int:
    return liveness.peak_bytes


def smallest(block: Block) -> Liveness:
    """Returns the lower of two peaks: in the given order and in the order of `schedule.greedy`.

    A block that keeps its order has only the first. It is computed once, so the block must not change afterwards.
    """
    if block.liveness is None and block.keeps_order:
        block.liveness = live(block)
    if block.liveness is None:
        run = _Run(block)
        ordered = run.result(greedy(block, run.buffers, run.step))
        block.liveness = _in_block_order(block, ordered.peak_bytes) or ordered
    return block.liveness


def _in_block_order(block: Block, limit: int) -> Liveness | None:
    """Returns the liveness in the given order, or None once the peak exceeds a limit."""
    run = _Run(block)
    for time, step in enumerate(block.steps):
        run.step(time, step)
        if run.peak.bytes > limit:
            return None
    return run.result(None)


def order_of(block: Block) -> Sequence[int]:
    """Returns the indices of a block's steps in the chosen order."""
    order = smallest(block).order
    return range(len(block.steps)) if order is None else order
