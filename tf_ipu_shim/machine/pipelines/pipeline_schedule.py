"""Computes when each stage of a pipeline processes which mini-batch.

Time is counted in slots: from one exchange between the stages to the next. A forward stage occupies a slot, and so does
the backward stage that shares its IPU.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import NamedTuple

SCHEDULES = ("Grouped", "Interleaved", "Sequential")
"""Names of the members of `PipelineSchedule`."""


class Work(NamedTuple):
    """The work of an IPU in a slot: one direction of its stage for one mini-batch."""

    slot: int
    stage: int
    mini_batch: int
    backward: bool

    def __str__(self) -> str:
        return f"{'B' if self.backward else 'F'}{self.mini_batch}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PipelineTimetable:
    """One execution of a pipeline whose stage s is on IPU s: a ramp up, a steady part, a ramp down, the update.

    Grouped: a forward and a backward stage in each slot of each IPU. Interleaved: one or the other, in turn.
    Sequential: one stage at a time.

    Args:
        schedule: one of `SCHEDULES`.
        mini_batches: `gradient_accumulation_count`, M.
        training: whether there are backward stages.

    Raises:
        ValueError: the schedule is unknown, there is no stage, or the schedule cannot run that number of mini-batches.

    Source: docs/reference/facts.md, section "Pipeline schedules".

    Example:
        >>> PipelineTimetable(schedule="Grouped", stages=4, mini_batches=8).slots
        15
    """

    schedule: str
    stages: int
    mini_batches: int
    training: bool = True

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"No pipeline schedule is called {self.schedule!r}; expected one of {', '.join(SCHEDULES)}. "
                "Choose one of these."
            )
        if self.stages < 1:
            raise ValueError(f"A pipeline has at least one stage, not {self.stages}. Pass at least 1.")
        multiple = multiple_of(self.schedule, self.stages, self.training)
        if self.mini_batches < 1 or self.mini_batches % multiple:
            raise ValueError(
                f"The schedule {self.schedule} with {self.stages} stages runs multiples of {multiple} mini-batches, "
                f"not {self.mini_batches}. Sequential runs any number. Choose a multiple."
            )

    @property
    def slots(self) -> int:
        """Slots from the first forward stage to the last stage of the last mini-batch, the update not counted."""
        last = 0 if self.training else self.stages - 1
        return self._slot(last, self.mini_batches - 1, self.training) + 1

    @property
    def stage_times(self) -> int:
        """Length of all slots, in times of one stage; a slot lasts as long as its busiest IPU, stages are equal."""
        most = [0] * self.slots
        for (slot, _), stages in collections.Counter((work.slot, work.stage) for work in self.work()).items():
            most[slot] = max(most[slot], stages)
        return sum(most)

    @property
    def idle_share(self) -> float:
        """Share of `stage_times` in which an IPU waits, on average over the IPUs; 0 to 1."""
        return 1 - self.mini_batches * (2 if self.training else 1) / self.stage_times

    def work(self) -> list[Work]:
        """Returns all work, in the order of slots, then of stages, forward before backward."""
        directions = (False, True) if self.training else (False,)
        return sorted(
            (
                Work(self._slot(stage, mini_batch, backward), stage, mini_batch, backward)
                for stage in range(self.stages)
                for mini_batch in range(self.mini_batches)
                for backward in directions
            ),
            key=lambda work: (work.slot, work.stage, work.backward),
        )

    def _slot(self, stage: int, mini_batch: int, backward: bool) -> int:
        return self.first_slot(stage, backward) + self.between * mini_batch

    def first_slot(self, stage: int, backward: bool) -> int:
        """Returns the slot of a stage's first mini-batch."""
        return 2 * self.stages - 1 - stage if backward else stage

    @property
    def between(self) -> int:
        """Slots from one mini-batch of a stage to the next."""
        directions = 2 if self.training else 1
        if self.schedule == "Sequential":
            return directions * self.stages
        return directions if self.schedule == "Interleaved" else 1


def multiple_of(schedule: str, stages: int, training: bool) -> int:
    """Returns the number that must divide the mini-batch count.

    Source: docs/reference/facts.md, section "Pipeline schedules".

    Example:
        >>> multiple_of("Grouped", stages=4, training=True)
        8
    """
    if schedule == "Sequential":
        return 1
    return 2 * stages if schedule == "Grouped" and training else stages


def fifo_slots(schedule: str, stages: int, stage: int, training: bool) -> int:
    """Returns the mini-batches whose forward values wait for a stage's backward stage.

    Source: docs/reference/facts.md, section "Pipeline schedules".

    Example:
        >>> [fifo_slots("Grouped", 3, stage, training=True) for stage in range(3)]
        [4, 2, 0]
    """
    return {"Grouped": 2, "Interleaved": 1, "Sequential": 0}[schedule] * (stages - 1 - stage) if training else 0
