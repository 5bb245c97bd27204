"""Implements `execution` of a pva report: runs of a program and their steps in modelled cycles."""

from __future__ import annotations

import bisect
import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from tf_ipu_shim.profiling.pipeline_timeline import Schedule, find_schedules
from tf_ipu_shim.profiling.profile import ProgramRow
from tf_ipu_shim.profiling.pva.compilation import Compilation
from tf_ipu_shim.profiling.pva.program import ComputeSet, Program, by_tile
from tf_ipu_shim.profiling.reader import Run


class Cycles(NamedTuple):
    """A sum of cycles."""

    total: int


class Microseconds(NamedTuple):
    """A time on this machine, since 1970: how long the simulation took says nothing about an IPU."""

    start: int
    end: int


class _Bound(NamedTuple):
    max: int
    min: int


class ActiveCycles(NamedTuple):
    """From when to when tiles are at work, in cycles from the start of the run."""

    cyclesFrom: _Bound
    cyclesTo: _Bound


class IpuStep(NamedTuple):
    """A step on one IPU.

    Args:
        tileBalance: work of all tiles as a part of their possible work, 0 to 1.
        activeTileBalance: the same for the tiles that take part.
        dataIn: bytes that the IPU receives.
        dataOut: bytes that it sends.
    """

    cycles: int
    activeCycles: ActiveCycles
    tileBalance: float
    activeTileBalance: float
    dataIn: int
    dataOut: int


class Step:
    """One step of a run.

    Args:
        start: cycles from the start of the run.
        ipus: how many there are.
        apart: how much later it begins on an IPU that is busy until then, in a pipeline.
    """

    def __init__(
        self, program: Program, row: ProgramRow, start: int, ipus: int, tiles: int, apart: Mapping[int, int]
    ) -> None:
        self.program = program
        self._row, self._start, self._ipus, self._tiles, self._apart = row, start, ipus, tiles, apart
        self._cycles = 0 if program.type is Program.Type.StreamCopyBegin else row.cycles

    @property
    def computeSets(self) -> list[ComputeSet]:
        """The computation; empty for exchanges, syncs and copies."""
        compute_set = self.program.computeset
        return [] if compute_set is None else [compute_set]

    @property
    def cyclesByTile(self) -> list[int]:
        """Cycles of each tile that takes part, the longest first."""
        return self.program.estimatedCyclesByTile

    @property
    def ipus(self) -> list[IpuStep]:
        """The step's meaning for each IPU."""
        return [self._ipu_step(ipu) for ipu in range(self._ipus)]

    def _ipu_step(self, ipu: int) -> IpuStep:
        row = self._row
        is_on_ipu = ipu in json.loads(row.ipus)
        cycles = self._cycles if is_on_ipu else 0
        start = self._start + self._apart.get(ipu, 0)
        end = start + cycles
        possible = row.tiles * row.cycles
        share = (
            min(1.0, sum(by_tile(row.cycles, row.tiles, row.total_cycles)) / possible)
            if possible and is_on_ipu
            else 0.0
        )
        received, sent = self._moved(ipu) if is_on_ipu else (0, 0)
        return IpuStep(
            cycles,
            ActiveCycles(_Bound(start, start), _Bound(end, end)),
            share * row.tiles / self._tiles,
            share,
            received,
            sent,
        )

    def _moved(self, ipu: int) -> tuple[int, int]:
        """Bytes that an IPU receives and sends: equal between its tiles, and in collectives."""
        if self.program.type is Program.Type.StreamCopyBegin:
            return 0, 0
        if not self._row.moves:
            return self._row.bytes, self._row.bytes
        moves = json.loads(self._row.moves)
        return (
            sum(size for size, _, destination in moves if destination == ipu),
            sum(size for size, source, _ in moves if source == ipu),
        )

    def __repr__(self) -> str:
        return f"<Step {self.program.name!r}, {self.program.type.name}: {self._cycles:,} cycles>"


_TOGETHER: Mapping[int, int] = {}


class Steps(Sequence[Step]):
    """The steps of a run, loops unrolled; each is made when it is asked for."""

    def __init__(self, compilation: Compilation, rows: Sequence[ProgramRow], facts: Mapping[str, Any]) -> None:
        self._compilation = compilation
        schedules = find_schedules(rows, facts)
        self._schedules = {loop: pipeline.once() for loop, pipeline in schedules.items()}
        self._apart = {
            row: begin_by_ipu
            for schedule in schedules.values()
            for row, begin_by_ipu in schedule.delays_by_ipu().items()
        }
        self._ends: dict[int, list[int]] = {}
        self._inside: dict[int, list[ProgramRow]] = {}
        for row in rows:
            self._inside.setdefault(row.parent, []).append(row)

    @functools.cached_property
    def _counts(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for row in sorted((row for rows in self._inside.values() for row in rows), key=lambda row: -row.id):
            inside = self._inside.get(row.id)
            leaf_count = len(self._compilation.by_row[row.id])
            counts[row.id] = int(row.times) * sum(counts[child.id] for child in inside) if inside else leaf_count
        return counts

    def __len__(self) -> int:
        return sum(self._counts[row.id] for row in self._inside.get(-1, ()))

    def __iter__(self) -> Iterator[Step]:
        return self._run(self._inside.get(-1, ()), 0)

    def _run(self, rows: Sequence[ProgramRow], later: int, apart: Mapping[int, int] = _TOGETHER) -> Iterator[Step]:
        for row in rows:
            inside = self._inside.get(row.id)
            if not inside:
                yield from self._leaf(row, later, apart)
                continue
            if row.id in self._schedules:
                for turn, begin in self._turns(self._schedules[row.id]):
                    start = later + row.start + int(begin) - turn.start
                    yield from self._run([turn], start, self._delays(turn, begin))
                continue
            times = int(row.times)
            for iteration in range(times):
                yield from self._run(inside, later + iteration * row.cycles // max(1, times), apart)

    @staticmethod
    def _turns(schedule: Schedule) -> Iterator[tuple[ProgramRow, float]]:
        """Yields the steps that run in a pipeline, with the cycle at which each begins, from the start of the loop."""
        for slot in range(schedule.slots):
            for turn, _, begin in schedule.in_slot(slot):
                yield turn.row, begin

    def _delays(self, turn: ProgramRow, begin: float) -> Mapping[int, int]:
        """Returns how much later than on the first IPU a turn begins on each, in whole cycles."""
        return {ipu: int(begin + by) - int(begin) for ipu, by in self._apart.get(turn.id, {}).items()}

    def _leaf(self, row: ProgramRow, later: int, apart: Mapping[int, int]) -> Iterator[Step]:
        target = self._compilation.target
        for program in self._compilation.by_row[row.id]:
            yield Step(program, row, row.start + later, target.ipusPerReplica, target.tilesPerIpu, apart)

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...

    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        """Returns a step by its number; a slice is a list."""
        if isinstance(index, slice):
            return [self[step] for step in range(*index.indices(len(self)))]
        step = index + len(self) if index < 0 else index
        if not 0 <= step < len(self):
            raise IndexError(
                f"There is no step {index}; expected one of a run with {len(self)}. Choose a smaller index."
            )
        return self._find_step(step)

    def _find_step(self, step: int) -> Step:
        rows, later, apart = self._inside[-1], 0, _TOGETHER
        while True:
            for row in rows:
                if step < self._counts[row.id]:
                    break
                step -= self._counts[row.id]
            inside = self._inside.get(row.id)
            if not inside:
                return list(self._leaf(row, later, apart))[step]
            if row.id in self._schedules:
                step, turn, begin = self._find_turn(step, self._schedules[row.id])
                later += row.start + int(begin) - turn.start
                apart = self._delays(turn, begin)
                rows = [turn]
                continue
            times = max(1, int(row.times))
            iteration, step = divmod(step, self._counts[row.id] // times)
            later += iteration * row.cycles // times
            rows = inside

    def _find_turn(self, step: int, schedule: Schedule) -> tuple[int, ProgramRow, float]:
        """The turn that has a step, the step's number in it, and when it begins, from the beginning of the loop."""
        ends = self._ends.get(schedule.loop.id)
        if ends is None:
            sizes = (
                sum(self._counts[turn.row.id] for turn, _, _ in schedule.in_slot(slot))
                for slot in range(schedule.slots)
            )
            ends = self._ends[schedule.loop.id] = list(itertools.accumulate(sizes))
        slot = bisect.bisect_right(ends, step)
        step -= ends[slot - 1] if slot else 0
        turns = schedule.in_slot(slot)
        at = 0
        while step >= self._counts[turns[at][0].row.id]:
            step -= self._counts[turns[at][0].row.id]
            at += 1
        return step, turns[at][0].row, turns[at][2]


class ExecutionRun(NamedTuple):
    """One run.

    Args:
        steps: its steps, in cycles of the cycle model.
    """

    steps: Steps
    microseconds: Microseconds
    name: str


class Execution:
    """The runs that were counted.

    Args:
        facts: facts of the profile: cycles of a run, the program's name, its pipelines.
    """

    def __init__(
        self,
        compilation: Compilation,
        rows: Sequence[ProgramRow],
        runs: Sequence[Run],
        facts: Mapping[str, Any],
    ) -> None:
        self._steps = Steps(compilation, rows, facts)
        cycles, name = int(facts["cycles"]), str(facts["program"])
        self.runs = [ExecutionRun(self._steps, Microseconds(*run), name) for run in runs]
        self.totalCycles = Cycles(cycles * len(runs))

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of all runs, one run after the other."""
        if len(self.runs) == 1:
            return self._steps
        return [step for run in self.runs for step in run.steps]
