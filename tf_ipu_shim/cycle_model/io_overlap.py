"""Models feed copies that overlap with a loop's computation, on I/O tiles.

While an iteration computes, the I/O tiles send the previous iteration's results, and then receive the next one's
element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tf_ipu_shim.cycle_model.computation import Computation, SyncPoint
from tf_ipu_shim.cycle_model.entry import Entry
from tf_ipu_shim.cycle_model.phase import Phase
from tf_ipu_shim.cycle_model.phases import phases_of
from tf_ipu_shim.cycle_model.sizes import FeedSizes
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.description import Block, Step

FEED = "feed"
HOST = "host"


def overlaps(sync_point: SyncPoint, steps: Iterable[Step], is_alone: bool) -> bool:
    """Returns whether a loop's host copies overlap with its iterations.

    This is published for programs of one IPU and pipelines under Grouped; at least two iterations must be certain.

    Source: docs/reference/facts.md, section "I/O tiles".
    """
    if (
        sync_point.branches
        or not sync_point.counted
        or sync_point.trip_count < 2
        or sync_point.trip_count != int(sync_point.trip_count)
    ):
        return False
    if sync_point.schedule != "Grouped" and (sync_point.schedule or not is_alone):
        return False
    bodies = [body_of(step) for step in steps]
    return None not in bodies and any(next(_feeds(body), None) for body in bodies if body is not None)


def body_of(step: Step) -> Block | None:
    """Returns the body of a counted loop on an IPU, or None if it is not a single function."""
    parts = step.work.parts or range(len(step.inside))
    bodies = [block for part, block in zip(parts, step.inside) if part != step.work.condition]
    return bodies[0] if len(bodies) == 1 else None


def compute_chips(blocks: Mapping[int, Block], chip: ChipSpec) -> dict[int, ChipSpec]:
    """Returns the chip with only its compute tiles, for each IPU with I/O tiles."""
    found = {}
    for ipu, block in blocks.items():
        tiles = {step.work.sizes.tiles for step in _all_steps(block) if _is_feed(step)}
        if tiles:
            found[ipu] = chip.with_tiles(chip.tiles - max(tiles))
    return found


def host_cycles(blocks: Iterable[Block], chip: ChipSpec, loads: bool) -> int:
    """Returns the cycles of an iteration's host copies on the IPU with the most."""
    return max(sum(cycles for _, _, cycles in _copies(block, chip, loads)) for block in blocks)


def copies(block: Block, ipu: int, begin: int, chip: ChipSpec, loads: bool) -> tuple[list[Entry], int]:
    """Returns the copies of an iteration in sequence, and their end."""
    found = []
    for within, step_index, cycles in _copies(block, chip, loads):
        found.append(_entry(within, step_index, ipu, begin, chip))
        begin += cycles
    return found, begin


class OverlappedTransfers:
    """Host copies of one iteration that overlap with its computation.

    Args:
        loads: whether an iteration follows, whose elements are copied from the host.
        stores: whether an iteration precedes, whose results are copied to the host.
    """

    def __init__(self, blocks: Mapping[int, Block], chip: ChipSpec, begin: int, loads: bool, stores: bool) -> None:
        self._blocks, self._chip, self._begin = blocks, chip, begin
        self._loads, self._stores = loads, stores
        self._sent = {ipu: host_cycles([block], chip, loads=False) if stores else 0 for ipu, block in blocks.items()}
        self._begins: dict[int, int] = {}
        self._handed_on: dict[int, int] = {}

    def remaining(
        self, ipu: int, block: Block, step_index: int, start: int, phases: Sequence[Phase]
    ) -> tuple[int, Sequence[Phase]]:
        """Returns a step's start and the phases left for compute tiles.

        The results of an iteration are copied to the I/O tiles after these have sent the previous results.
        """
        self._begins.setdefault(ipu, start)
        step = block.steps[step_index]
        if not _is_feed(step):
            return start, phases
        if step.work.sizes.bytes < 0:
            start = max(start, self._begins[ipu] + self._sent[ipu])
        return start, [phase for phase in phases if phase.kind != HOST]

    def element_done(self, entry: Entry) -> None:
        """Records when the I/O tiles have passed on an element."""
        sizes = entry.computation.sizes if entry.computation is not None else None
        if isinstance(sizes, FeedSizes) and sizes.bytes > 0:
            (ipu,) = entry.ipus
            self._handed_on[ipu] = entry.start + entry.cycles

    def entries_and_busy(self) -> tuple[list[Entry], dict[int, int]]:
        """Returns the copies, and each IPU's busy cycles until its last copy ends."""
        entries: list[Entry] = []
        spans = {}
        for ipu, block in self._blocks.items():
            begin = at = self._begins.get(ipu, self._begin)
            for loads in (is_load for is_load in (False, True) if (self._loads if is_load else self._stores)):
                at = max(at, self._handed_on.get(ipu, at)) if loads else at
                found, at = copies(block, ipu, at, self._chip, loads)
                entries += found
            spans[ipu] = at - begin
        return entries, spans


def _entry(block: Block, step_index: int, ipu: int, begin: int, chip: ChipSpec) -> Entry:
    step = block.steps[step_index]
    phase = _host_phase(step.work, chip)
    name = step.work.name or step.owner
    entry = Entry("step", step.owner, (ipu,), begin, phase.cycles, computation=step.work, steps=((block, step_index),))
    entry.children = [Entry(HOST, name, (ipu,), begin, phase.cycles, phase=phase)]
    return entry


def _copies(block: Block, chip: ChipSpec, loads: bool) -> Iterator[tuple[Block, int, int]]:
    for within, step_index in _feeds(block):
        work = within.steps[step_index].work
        if work.sizes.bytes and (work.sizes.bytes > 0) == loads:
            yield within, step_index, _host_phase(work, chip).cycles


def _host_phase(work: Computation, chip: ChipSpec) -> Phase:
    return next(phase for phase in phases_of(work, chip) if phase.kind == HOST)


def _feeds(block: Block) -> Iterator[tuple[Block, int]]:
    """Yields the feeds of an iteration, except those in inner loops and branches."""
    for step_index, step in enumerate(block.steps):
        if _is_feed(step):
            yield block, step_index
        elif step.inside and step.work is None:
            for inner in step.inside:
                yield from _feeds(inner)


def _all_steps(block: Block) -> Iterator[Step]:
    for step in block.steps:
        yield step
        for inner in step.inside:
            yield from _all_steps(inner)


def _is_feed(step: Step) -> bool:
    return isinstance(step.work, Computation) and step.work.kind == FEED
