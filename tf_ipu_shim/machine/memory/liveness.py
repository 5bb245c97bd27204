"""What is alive at each step of a program, and at which step that is most."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tf_ipu_shim.machine.memory._buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block, Mode, Value
from tf_ipu_shim.machine.memory.schedule import greedy


@dataclasses.dataclass(frozen=True, kw_only=True)
class Liveness:
    """What a block keeps alive.

    Args:
        always: values that are alive at every step, those of inner blocks included.
        peak_bytes: bytes of the others at the largest step.
        peak_step: the op that runs then; the innermost one for a loop, branch or call.
        at_peak: the values that are alive then, apart from `always`.
    """

    always: tuple[Value, ...]
    peak_bytes: int
    peak_step: str
    at_peak: tuple[Value, ...]


def live(block: Block, order: Sequence[int] | None = None) -> Liveness:
    """Runs through a block's steps and finds where most is alive.

    A step needs what it takes and what it gives at the same time, and during it one of its inner blocks. What an
    inner block is given is counted outside, and its peak on top of that.

    Args:
        block: the block.
        order: numbers of all steps in the order in which they run; as they stand when left out.

    Returns:
        The figures, bytes.

    Example:
        >>> block = Block("double")
        >>> x, y = block.add(Value(400, "x", "argument")), block.add(Value(400, "y", "temporary"))
        >>> block.run("x", (), (x,)); block.run("double", (x,), (y,))
        >>> live(block).peak_bytes
        800
    """
    buffers = Buffers(block)
    always = [value for value in block.values if value.mode is Mode.ALWAYS]
    made_at: dict[int, int] = {}
    freed_at: dict[int, int] = {}
    renamed = 0  # values that had overwritten others by the peak
    peak, peak_time, deepest, with_gives = 0, -1, None, True
    for time, index in enumerate(range(len(block.steps)) if order is None else order):
        step = block.steps[index]
        blocks = [smallest(each) for each in step.inside]
        always.extend(value for each in blocks for value in each.always)
        inner = max(blocks, key=_peak_bytes, default=None)
        inside = inner.peak_bytes if inner is not None else 0
        buffers.take(step)
        before = buffers.live
        made = buffers.give(step)
        made_at.update(dict.fromkeys(made, time))
        if step.loops or inner is None:
            needed = buffers.live + inside
            given = True
        else:
            # A call's results are made inside of it, so they are not counted twice.
            given = buffers.live > before + inside
            needed = max(buffers.live, before + inside)
            inner = None if given else inner
        if needed > peak:
            peak, peak_time, deepest, with_gives = needed, time, inner, given
            renamed = len(buffers.overwritten)
        freed_at.update(dict.fromkeys(buffers.free(step, made), time))
    current = {**dict(enumerate(buffers.value)), **dict(buffers.overwritten[:renamed])}
    at_peak = [
        block.values[current[buffer]]
        for buffer, time in made_at.items()
        if (time < peak_time or (time == peak_time and with_gives)) and freed_at.get(buffer, peak_time) >= peak_time
    ]
    name = "" if peak_time < 0 else block.steps[peak_time if order is None else order[peak_time]].owner
    if deepest is not None:
        at_peak.extend(deepest.at_peak)
        name = deepest.peak_step or name
    return Liveness(always=tuple(always), peak_bytes=peak, peak_step=name, at_peak=tuple(at_peak))


def _peak_bytes(found: Liveness) -> int:
    return found.peak_bytes


def smallest(block: Block) -> Liveness:
    """The lower of two peaks: with the steps as they stand, and as `schedule.greedy` orders them.

    It is found once: the block must not change any more.
    """
    if block.liveness is None:
        found, other = live(block), live(block, greedy(block))
        block.liveness = other if other.peak_bytes < found.peak_bytes else found
    return block.liveness
