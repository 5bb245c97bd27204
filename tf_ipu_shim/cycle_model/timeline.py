"""Builds a program's timeline: a tree of each IPU's work with its start times.

IPUs run their own steps one after the other and synchronise at exchanges and in loops: the first to arrive waits. The
mini-batches of a pipeline, which follow each other in the program, are put into the slots of its schedule.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.cycle_model import io_overlap
from tf_ipu_shim.cycle_model.collectives import CollectiveBatcher, collective_cost
from tf_ipu_shim.cycle_model.computation import Computation, SyncPoint
from tf_ipu_shim.cycle_model.entry import Entry, PipelineSlots
from tf_ipu_shim.cycle_model.exchanges import NO_EXCHANGE, SlotExchange, exchange_cycles, join
from tf_ipu_shim.cycle_model.io_overlap import OverlappedTransfers
from tf_ipu_shim.cycle_model.phase import Phase
from tf_ipu_shim.cycle_model.phases import phases_of
from tf_ipu_shim.cycle_model.sizes import CollectiveSizes
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.description import Block, Step
from tf_ipu_shim.machine.memory.liveness import order_of

_OVERLAPPING = ("Grouped", "Interleaved")  # schedules by which IPUs work on several mini-batches at once
COMMON_HOST_SYNC_SECONDS = 2.5e-6
"""Time for which the replicas of a program wait for each other at a copy with the host.

Calibrated: a second replica adds 27 us to a mini-batch of Graphcore's MNIST tutorial, of which its six sums take 17.
It has four copies with the host (`python -m benchmarks.calibration --only "2 replicas"`).
"""


@dataclasses.dataclass(frozen=True)
class Timeline:
    """A program's timeline.

    Args:
        cycles: the cycles from its beginning to the end of its last IPU.
        busy: cycles in which each IPU does something, exchanges and syncs included.
    """

    entries: list[Entry]
    cycles: int
    busy: Mapping[int, float]


class SyncError(ValueError):
    """IPUs that wait for each other: their steps do not fit together."""


def timeline_of(
    blocks: Mapping[int, Block],
    chip: ChipSpec,
    num_ipus: int,
    replicas: int = 1,
) -> Timeline:
    """Builds the timeline of a program's steps.

    Example:
        >>> from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> from tf_ipu_shim.machine.memory import Value
        >>> block = Block("double")
        >>> x, y = block.add(Value(4096, "x", "argument")), block.add(Value(4096, "y", "temporary"))
        >>> block.run("double", (x,), (y,), work=Computation("elementwise", "double", ElementwiseSizes(1024, 1)))
        >>> timeline_of({0: block}, CHIPS["gc200"], 1).cycles
        239
    """
    clock = _Clock(blocks, chip, num_ipus, replicas)
    run = clock.run(blocks, 0)
    return Timeline(run.entries, max(run.ends.values(), default=0), run.busy)


class _BlockRun(NamedTuple):
    """Blocks that have run together: their entries, and the end and busy time of each IPU."""

    entries: list[Entry]
    ends: dict[int, int]
    busy: dict[int, float]


class _Clock:
    def __init__(self, blocks: Mapping[int, Block], chip: ChipSpec, num_ipus: int, replicas: int) -> None:
        self._chip = chip
        self._computing = io_overlap.compute_chips(blocks, chip)
        self._is_alone = len(blocks) == 1
        self._num_ipus = max(num_ipus, 1)
        self._replicas = replicas
        self._shares: dict[int, float] = {}  # of exchanges that move with others, by the key of their sync point

    def run(self, blocks: Mapping[int, Block], start: int, transfers: OverlappedTransfers | None = None) -> _BlockRun:
        """Runs blocks together; transfers, if given, make the copies of feeds with the host instead."""
        remaining = {ipu: collections.deque(order_of(block)) for ipu, block in blocks.items()}
        now = dict.fromkeys(blocks, start)
        busy = dict.fromkeys(blocks, 0.0)
        participants = _participants(blocks)
        batchers = {ipu: CollectiveBatcher() for ipu in blocks}
        entries: list[Entry] = []
        waiting: dict[int, dict[int, int]] = {}  # by the key of a sync point the step of each IPU that has arrived
        ready = list(blocks)
        while ready:
            ipu = ready.pop()
            while remaining[ipu]:
                step_index = remaining[ipu].popleft()
                step = blocks[ipu].steps[step_index]
                merges = batchers[ipu].merges(step)
                if not isinstance(step.work, SyncPoint):
                    entry = self._single_ipu_step(ipu, blocks[ipu], step_index, now[ipu], transfers, merges)
                    if entry is not None:
                        entries.append(entry)
                        end = entry.start + entry.cycles
                        busy[ipu] += end - now[ipu]  # it waits only for its own copies
                        now[ipu] = end
                    continue
                arrivals = waiting.setdefault(step.work.key, {})
                arrivals[ipu] = step_index
                if len(arrivals) < participants[step.work.key]:
                    break
                del waiting[step.work.key]
                entries.append(self._sync(blocks, arrivals, step.work, now, busy))
                ready.extend(other for other in arrivals if other != ipu)
        if waiting:
            raise SyncError(
                f"IPUs wait for each other at {_owners(blocks, waiting)}; expected one order of exchanges on all IPUs. "
                "Report the script."
            )
        entries.sort(key=lambda entry: (entry.start, entry.ipus))
        return _BlockRun(entries, now, busy)

    def _single_ipu_step(
        self, ipu: int, block: Block, step_index: int, start: int, transfers: OverlappedTransfers | None, merges: bool
    ) -> Entry | None:
        step = block.steps[step_index]
        if step.inside and not isinstance(step.work, Computation):  # blocks of one IPU, one after the other
            entries, end = [], start
            for inner in step.inside:
                run = self.run({ipu: inner}, end, transfers)
                entries.extend(run.entries)
                end = run.ends[ipu]
            return Entry("part", step.owner, (ipu,), start, end - start, steps=((block, step_index),), children=entries)
        if step.work is None:
            return None
        phases = self._phases(step.work, ipu, merges)
        if not phases:
            return None
        if transfers is not None:
            start, phases = transfers.remaining(ipu, block, step_index, start, phases)
        entry = Entry("step", step.owner, (ipu,), start, computation=step.work, steps=((block, step_index),))
        for phase in phases:
            # Compute sets of a user's op have whole names.
            name = phase.name if step.work.kind == "user_op" else (step.work.name or step.owner) + phase.name
            entry.children.append(Entry(phase.kind, name, (ipu,), start + entry.cycles, phase.cycles, phase=phase))
            entry.cycles += phase.cycles
        if transfers is not None:
            transfers.element_done(entry)
        return entry

    def _phases(self, computation: Computation, ipu: int, merges: bool) -> Sequence[Phase]:
        if isinstance(computation.sizes, CollectiveSizes):
            return self._collective(computation.sizes, merges)
        if computation.kind == "feed":
            return phases_of(computation, self._chip)
        phases = phases_of(computation, self._computing.get(ipu, self._chip))
        if computation.kind != "host" or self._replicas < 2 or not phases:
            return phases
        return [Phase("sync", "", self._chip.cycles(COMMON_HOST_SYNC_SECONDS), self._chip.tiles), *phases]

    def _collective(self, sizes: CollectiveSizes, merges: bool) -> list[Phase]:
        """Returns the phases of a collective (see `collective_cost`); merged ones wait for no sync."""
        size, group, _, rounds = sizes
        chip, replicas = self._chip, min(group or self._replicas, self._replicas)
        if replicas < 2 or not size:
            return []
        ipus = links.round_up_to_ladders(
            max(2, min(self._num_ipus, self._replicas * max(1, self._num_ipus // self._replicas)))
        )
        found = collective_cost(size, replicas, ipus, ipus * replicas // self._replicas, rounds)
        sent = rounds * size * (replicas - 1) // replicas
        cycles = chip.cycles(found.seconds)
        moved = Phase("links", "", cycles, chip.tiles, cycles * chip.tiles, sent)
        if merges:
            return [moved]
        step = links.sync_cycles(chip, ipus) + chip.cycles(links.EXCHANGE_SECONDS)
        return [Phase("sync", "", found.steps * step, chip.tiles), moved]

    def _sync(
        self, blocks: Mapping[int, Block], arrivals: Mapping[int, int], sync_point: SyncPoint, now: dict[int, int],
        busy: dict[int, float],
    ) -> Entry:  # fmt: skip
        start = max(now[ipu] for ipu in arrivals)
        steps = {ipu: blocks[ipu].steps[step_index] for ipu, step_index in arrivals.items()}
        if sync_point.computation is not None:
            return self._exchange(blocks, arrivals, steps, sync_point, now, busy, start)
        first = next(iter(arrivals))
        kind = "branch" if sync_point.branches else "loop"
        entry = Entry(
            kind,
            steps[first].owner,
            tuple(sorted(arrivals)),
            start,
            0,
            sync_point.trip_count,
            steps=_steps(blocks, arrivals),
        )
        entry.exact = sync_point.counted
        if io_overlap.overlaps(sync_point, steps.values(), self._is_alone):
            return self._overlapped_loop(entry, steps, sync_point, now, busy)
        exchange = self._join_exchanges([block for step in steps.values() for block in step.inside], sync_point)
        each = self._parts_of(entry, steps, start, sync_point)
        inside_busy: Mapping[int, float]
        if sync_point.branches:  # which one runs is not known: the longest
            entry.cycles, inside_busy = max(each, key=_length, default=(0, {}))
        else:
            once, inside_busy = sum(length for length, _ in each), _sum(inside for _, inside in each)
            entry.cycles = self._loop_cycles(entry, sync_point, once, inside_busy, exchange)
        for ipu in arrivals:
            now[ipu] = start + entry.cycles
            busy[ipu] += inside_busy.get(ipu, 0.0) * (1 if sync_point.branches else sync_point.trip_count)
        return entry

    def _parts_of(
        self, entry: Entry, steps: Mapping[int, Step], begin: int, sync_point: SyncPoint
    ) -> list[tuple[int, Mapping[int, float]]]:
        """Adds the functions of a loop or branch in sequence; returns length and busy time of each."""
        each: list[tuple[int, Mapping[int, float]]] = []
        parts = {part for step in steps.values() for part in _parts(step)}
        for part in sorted(parts - {sync_point.condition} if sync_point.counted else parts):
            parts_by_ipu = {ipu: dict(zip(_parts(step), step.inside)) for ipu, step in steps.items()}
            inner = {ipu: blocks[part] for ipu, blocks in parts_by_ipu.items() if part in blocks}
            run = self.run(inner, begin)
            length = max(run.ends.values(), default=begin) - begin
            name = f"{entry.name} {part}"
            entry.children.append(Entry("part", name, tuple(sorted(inner)), begin, length, children=run.entries))
            each.append((length, run.busy))
            begin += 0 if sync_point.branches else length
        return each

    def _overlapped_loop(
        self,
        entry: Entry,
        steps: Mapping[int, Step],
        sync_point: SyncPoint,
        now: dict[int, int],
        busy: dict[int, float],
    ) -> Entry:
        """Adds a loop whose feed copies overlap with its iterations."""
        inner = {ipu: body for ipu, step in steps.items() if (body := io_overlap.body_of(step)) is not None}
        if sync_point.schedule:
            exchange = self._join_exchanges(inner.values(), sync_point)
            cycles, inside_busy = self._iteration(entry, inner, entry.start, True, True)
            lead, last = (io_overlap.host_cycles(inner.values(), self._chip, loads) for loads in (True, False))
            entry.cycles = self._loop_cycles(entry, sync_point, cycles, inside_busy, exchange, lead) + lead + last
            for ipu in steps:
                now[ipu] = entry.start + entry.cycles
                busy[ipu] += inside_busy.get(ipu, 0.0) * sync_point.trip_count
            return entry
        # The first iteration and the last one stand outside of the loop, as Graphcore's compiler has it.
        ((ipu, block),) = inner.items()
        entry.kind, entry.times, times = "part", 1.0, int(sync_point.trip_count)
        end = entry.start
        entry.children, end = io_overlap.copies(block, ipu, end, self._chip, loads=True)
        end += self._iteration(entry, inner, end, True, False)[0]
        if times > 2:
            loop = Entry("loop", entry.name, entry.ipus, end, 0, times - 2)
            loop.cycles = self._iteration(loop, inner, end, True, True)[0] * (times - 2)
            entry.children.append(loop)
            end += loop.cycles
        end += self._iteration(entry, inner, end, False, True)[0]
        stores, end = io_overlap.copies(block, ipu, end, self._chip, loads=False)
        entry.children += stores
        entry.cycles = end - entry.start
        now[ipu] = end
        busy[ipu] += entry.cycles
        return entry

    def _iteration(
        self, entry: Entry, inner: Mapping[int, Block], begin: int, loads: bool, stores: bool
    ) -> tuple[int, dict[int, float]]:
        """Adds an iteration with overlapped copies; returns its length and busy times."""
        transfers = OverlappedTransfers(inner, self._chip, begin, loads, stores)
        run = self.run(inner, begin, transfers)
        copies, spans = transfers.entries_and_busy()
        length = max(*run.ends.values(), *(copy.start + copy.cycles for copy in copies), begin) - begin
        busy = {ipu: max(cycles, spans[ipu]) for ipu, cycles in run.busy.items()}
        children = sorted([*run.entries, *copies], key=lambda child: child.start)
        entry.children.append(Entry("part", f"{entry.name} 1", entry.ipus, begin, length, children=children))
        return length, busy

    def _join_exchanges(self, blocks: Iterable[Block], sync_point: SyncPoint) -> SlotExchange:
        """Joins the exchanges of a pipeline's mini-batch; the stages of other loops and schedules take turns."""
        if sync_point.schedule not in _OVERLAPPING:
            return NO_EXCHANGE
        works = (step.work for block in blocks for step in block.steps)
        moves = {work.key: work.moves for work in works if isinstance(work, SyncPoint) and work.moves}
        slots = 2 if sync_point.training and sync_point.schedule == "Interleaved" else 1
        joined = join(list(moves.values()), slots, self._chip, self._num_ipus)
        self._shares.update(dict.fromkeys(moves, joined.share))
        return joined

    @staticmethod
    def _loop_cycles(
        entry: Entry,
        sync_point: SyncPoint,
        once: int,
        busy: Mapping[int, float],
        exchange: SlotExchange,
        lead: int = 0,
    ) -> int:
        """Returns the cycles of all iterations; a pipeline's slot is its busiest IPU's work, and an exchange.

        Grouped: an IPU does all its stages in a slot, forward and backward. Interleaved: one direction of the two in
        a slot. Sequential: one stage at a time, in the program's order.
        """
        directions = 2 if sync_point.training else 1
        work = max((cycles - exchange.by_ipu.get(ipu, 0) for ipu, cycles in busy.items()), default=0.0)
        if sync_point.schedule == "Grouped":
            count, slot = sync_point.trip_count + directions * sync_point.stages - 1, work + exchange.cycles
        elif sync_point.schedule == "Interleaved":
            count = directions * (sync_point.trip_count + sync_point.stages - 1)
            slot = work / directions + exchange.cycles
        else:
            return round(sync_point.trip_count * once)
        entry.slots = PipelineSlots(sync_point.schedule, sync_point.stages, sync_point.training, slot, lead)
        return round(count * slot)

    def _exchange(
        self,
        blocks: Mapping[int, Block],
        arrivals: Mapping[int, int],
        steps: Mapping[int, Step],
        sync_point: SyncPoint,
        now: dict[int, int],
        busy: dict[int, float],
        start: int,
    ) -> Entry:
        chip, moves, computation = self._chip, sync_point.moves, sync_point.computation
        sync, cycles = exchange_cycles(moves, chip, self._num_ipus, self._shares.get(sync_point.key, 1.0))
        owner, ipus = next(iter(steps.values())).owner, tuple(sorted(arrivals))
        name = (computation.name if computation is not None else "") or owner
        entry = Entry("step", owner, ipus, start, sync + cycles, computation=computation)
        entry.steps = _steps(blocks, arrivals)
        moved = Phase("links", "", cycles, chip.tiles, cycles * chip.tiles, sum(move.bytes for move in moves))
        entry.children = [
            Entry("sync", name, ipus, start, sync, phase=Phase("sync", "", sync, chip.tiles)),
            Entry("links", name, ipus, start + sync, cycles, phase=moved),
        ]
        for ipu in arrivals:
            now[ipu] = start + entry.cycles
            busy[ipu] += entry.cycles
        return entry


def _participants(blocks: Mapping[int, Block]) -> dict[int, int]:
    """Returns the number of participants of each sync point."""
    counts: dict[int, int] = {}
    for block in blocks.values():
        for step in block.steps:
            if isinstance(step.work, SyncPoint):
                counts[step.work.key] = counts.get(step.work.key, 0) + 1
    return counts


def _owners(blocks: Mapping[int, Block], waiting: Mapping[int, Mapping[int, int]]) -> str:
    """Returns the names of the steps at which IPUs wait."""
    steps = [blocks[ipu].steps[index] for arrivals in waiting.values() for ipu, index in arrivals.items()]
    return ", ".join(sorted(step.owner for step in steps))


def _steps(blocks: Mapping[int, Block], arrivals: Mapping[int, int]) -> tuple[tuple[Block, int], ...]:
    return tuple((blocks[ipu], step_index) for ipu, step_index in sorted(arrivals.items()))


def _parts(step: Step) -> Sequence[int]:
    return step.work.parts if isinstance(step.work, SyncPoint) and step.work.parts else range(len(step.inside))


def _length(part: tuple[int, Mapping[int, float]]) -> int:
    return part[0]


def _sum(parts: Iterable[Mapping[int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for part in parts:
        for ipu, cycles in part.items():
            found[ipu] = found.get(ipu, 0.0) + cycles
    return found
