"""Schedules a pipeline's stages into time slots, each slot for one mini-batch.

A profile has a pipeline's loop as it processes one mini-batch. Its stages work side by side, each on another one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.machine.pipelines.pipeline_schedule import PipelineTimetable
from tf_ipu_shim.profiling.profile import ProgramRow

FACT = "pipelines"
"""The fact that has the `cycle_model.Slots` of each such loop, by the id of its row."""


class ScheduledStep(NamedTuple):
    """A step of a mini-batch on one IPU.

    Args:
        slot: the slot of the first mini-batch.
        begin: cycles from the beginning of the slot.
    """

    row: ProgramRow
    ipu: int
    slot: int
    begin: float


class Schedule(NamedTuple):
    """A pipeline's loop.

    Args:
        turns: the work of its mini-batch, on each IPU.
        between: slots from one mini-batch of a stage to the next.
        slots: how many there are.
        lead: cycles before the first slot.
    """

    loop: ProgramRow
    turns: tuple[ScheduledStep, ...]
    mini_batches: int
    between: int
    slots: int
    cycles: float
    lead: float

    def in_slot(self, slot: int) -> list[tuple[ScheduledStep, int, float]]:
        """Returns the turns of a slot in the order in which they begin."""
        scheduled_steps = []
        for turn in self.turns:
            mini_batch, rest = divmod(slot - turn.slot, self.between)
            if not rest and 0 <= mini_batch < self.mini_batches:
                scheduled_steps.append((turn, mini_batch, self.lead + slot * self.cycles + turn.begin))
        return sorted(scheduled_steps, key=lambda scheduled: scheduled[2])

    def once(self) -> Schedule:
        """Returns the same with each row once, where it begins first: an exchange is one step of several IPUs."""
        first: dict[int, ScheduledStep] = {}
        for turn in sorted(self.turns, key=lambda turn: (turn.slot, turn.begin)):
            first.setdefault(turn.row.id, turn)
        return self._replace(turns=tuple(first.values()))

    def delays_by_ipu(self) -> dict[int, dict[int, float]]:
        """For each row of several turns, how much later than the first of them it begins on each IPU.

        An exchange ends the work of one IPU on a mini-batch, and begins another IPU's.
        """
        begins: dict[int, dict[int, float]] = {}
        for turn in self.turns:
            begins.setdefault(turn.row.id, {})[turn.ipu] = turn.slot * self.cycles + turn.begin
        several = {row: begin_by_ipu for row, begin_by_ipu in begins.items() if len(begin_by_ipu) > 1}
        return {
            row: {ipu: begin - min(begin_by_ipu.values()) for ipu, begin in begin_by_ipu.items()}
            for row, begin_by_ipu in several.items()
        }


def find_schedules(programs: Sequence[ProgramRow], facts: Mapping[str, Any]) -> dict[int, Schedule]:
    """Returns the schedules of a profile's pipelines, by the id of their loop.

    Example:
        >>> find_schedules([], {})
        {}
    """
    schedules = {}
    for name, (schedule, stages, training, cycles, lead) in facts.get(FACT, {}).items():
        loop = programs[int(name)]
        parts = [row for row in programs if row.parent == loop.id]
        if len(parts) != 1 or loop.times != int(loop.times):
            continue
        # How slots follow each other does not depend on how many mini-batches there are; this many any schedule takes.
        table = PipelineTimetable(schedule=schedule, stages=stages, mini_batches=2 * stages, training=training)
        inside = [row for row in programs if row.parent == parts[0].id]
        turns = [
            turn
            for ipu, on_it in _group_by_ipu(inside).items()
            for turn in _schedule_steps(ipu, on_it, table, facts, cycles)
        ]
        count = int(loop.times)
        last = max((turn.slot for turn in turns), default=0) + table.between * (count - 1)
        schedules[loop.id] = Schedule(loop, tuple(turns), count, table.between, last + 1, cycles, lead)
    return schedules


def map_to_steps(programs: Sequence[ProgramRow], pipelines: Mapping[int, Schedule]) -> dict[int, int]:
    """Returns the turn's row that each row of a pipeline is in or is, by ids; other rows are left out."""
    turns = {turn.row.id for schedule in pipelines.values() for turn in schedule.turns}
    step_of_row: dict[int, int] = {}
    for row in programs:
        if row.id in turns:
            step_of_row[row.id] = row.id
        elif row.parent in step_of_row:
            step_of_row[row.id] = step_of_row[row.parent]
    return step_of_row


def leaves_of_steps(programs: Sequence[ProgramRow], inside: Mapping[int, int]) -> dict[int, list[ProgramRow]]:
    """Returns the leaf rows of each scheduled step, by the id of the step's row."""
    holders = {row.parent for row in programs}
    leaves: dict[int, list[ProgramRow]] = {}
    for row in programs:
        if row.id in inside and row.id not in holders:
            leaves.setdefault(inside[row.id], []).append(row)
    return leaves


def _group_by_ipu(rows: Sequence[ProgramRow]) -> dict[int, list[ProgramRow]]:
    rows_by_ipu: dict[int, list[ProgramRow]] = {}
    for row in rows:
        for ipu in json.loads(row.ipus):
            rows_by_ipu.setdefault(ipu, []).append(row)
    return rows_by_ipu


def _schedule_steps(
    ipu: int, rows: list[ProgramRow], table: PipelineTimetable, facts: Mapping[str, Any], cycles: float
) -> Iterator[ScheduledStep]:
    """Groups an IPU's rows by stage: it waits for other IPUs between stages."""
    slots = _first_slots(ipu, table, facts)
    rows.sort(key=lambda row: row.start)
    cuts = _stage_boundaries(rows, len(slots) - 1)
    groups = [rows[begin:end] for begin, end in zip(cuts, cuts[1:])]
    if table.schedule == "Interleaved":
        yield from _schedule_sequentially(ipu, list(zip(slots, groups)), table.between, cycles)
        return
    starts = _start_cycles(groups, cycles)
    before = 0.0  # all in one slot, one after the other
    for slot, group, begins in zip(slots, groups, starts):
        for row, start in zip(group, begins):
            yield ScheduledStep(row, ipu, slot, before + start)
        before += _group_cycles(group, begins)


def _schedule_sequentially(
    ipu: int, groups: Sequence[tuple[int, list[ProgramRow]]], between: int, cycles: float
) -> Iterator[ScheduledStep]:
    """Groups an IPU's rows into slots of half the busiest IPU's time for a mini-batch.

    One direction may take longer than a slot, and the other less: the next one begins at its end. All of it fits
    between one mini-batch and the next.
    """
    groups = [(slot, group) for slot, group in groups if group]
    starts = _start_cycles([group for _, group in groups], between * cycles)
    order = sorted(range(len(groups)), key=lambda index: groups[index][0] % between)
    begins = dict.fromkeys(order, 0.0)
    free = 0.0
    for repetition in range(len(groups) + 1):  # until it is the same from one mini-batch to the next
        for index in order:
            begin = (groups[index][0] % between + repetition * between) * cycles
            begins[index] = max(0.0, free - begin)
            free = begin + begins[index] + _group_cycles(groups[index][1], starts[index])
    for index, (slot, group) in enumerate(groups):
        for row, start in zip(group, starts[index]):
            yield ScheduledStep(row, ipu, slot, begins[index] + start)


def _start_cycles(groups: Sequence[Sequence[ProgramRow]], cycles: float) -> list[list[float]]:
    """Returns when the rows of each group begin, from the beginning of the group.

    The program's own times are used if all groups together need no more than these cycles. Otherwise the waits of the
    IPU for others are left out.
    """
    offsets = [[float(row.start - group[0].start) for row in group] for group in groups]
    if sum(map(_group_cycles, groups, offsets)) <= cycles:
        return offsets
    return [[0.0, *itertools.accumulate(float(row.cycles) for row in group[:-1])] if group else [] for group in groups]


def _group_cycles(rows: Sequence[ProgramRow], starts: Sequence[float]) -> float:
    return max((start + row.cycles for row, start in zip(rows, starts)), default=0.0)


def _first_slots(ipu: int, table: PipelineTimetable, facts: Mapping[str, Any]) -> list[int]:
    """Returns the first slots of an IPU's work on a mini-batch, forward and then backward."""
    named = facts.get("stages", [])
    ipu_stages = named[ipu] if ipu < len(named) and named[ipu] else [0]
    slots = [table.first_slot(stage, False) for stage in ipu_stages]
    if table.training:  # the last stage goes backward at once, in the same slot
        slots += [table.first_slot(stage, True) for stage in reversed(ipu_stages) if stage < table.stages - 1]
    return slots


def _stage_boundaries(rows: Sequence[ProgramRow], most: int) -> list[int]:
    """Splits rows, ordered by start, at the longest waits."""
    ends = list(itertools.accumulate((row.start + row.cycles for row in rows), max))
    longest = sorted(range(1, len(rows)), key=lambda at: ends[at - 1] - rows[at].start)[:most]
    return [0, *sorted(at for at in longest if rows[at].start > ends[at - 1]), len(rows)]
