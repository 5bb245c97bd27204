"""Defines the nodes of a timeline's tree, and the schedule of a pipeline's slots."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.phase import Phase
from tf_ipu_shim.machine.memory.description import Block


class PipelineSlots(NamedTuple):
    """The schedule by which a pipeline's mini-batches follow each other.

    Args:
        schedule: `"Grouped"` or `"Interleaved"`.
        training: whether it has backward stages.
        cycles: the cycles of a slot, on its busiest IPU.
        lead: cycles before the first slot, in which the first elements are copied from the host.
    """

    schedule: str
    stages: int
    training: bool
    cycles: float
    lead: int = 0


@dataclasses.dataclass
class Entry:
    """One node of the timeline.

    Args:
        kind: `"step"` is an op. `"sync"`, `"exchange"`, `"compute"`, `"host"` and `"links"` are its phases on an IPU.
            `"loop"`, `"branch"` and `"part"` contain others.
        name: the name of the op, or of the compute set or copy in full.
        start: cycle at which it begins, in the first run of its block.
        cycles: the cycles of one run, loops with all their iterations.
        times: how often a loop runs its parts; 1 for all else.
        steps: each block that its step is in, with the step's number there; none for parts and phases.
        children: the children in the order in which they run.
        exact: whether the number of iterations is known.
        slots: how the mini-batches of a pipeline's loop follow each other; None for all else, and under Sequential.
    """

    kind: str
    name: str
    ipus: tuple[int, ...]
    start: int
    cycles: int = 0
    times: float = 1.0
    phase: Phase | None = None
    computation: Computation | None = None
    steps: tuple[tuple[Block, int], ...] = ()
    children: list[Entry] = dataclasses.field(default_factory=list)
    exact: bool = True
    slots: PipelineSlots | None = None
