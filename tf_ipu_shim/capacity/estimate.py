"""Estimates a captured program's memory and cycles on another chip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tf_ipu_shim.cycle_model import ERROR_FACTORS, Entry, timeline_of
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory import IpuPlan, plan_of
from tf_ipu_shim.runtime.captured_programs import CapturedProgram


class Estimate(NamedTuple):
    """A program's estimate on a chip.

    Args:
        ipus: memory of each IPU of a replica; all replicas are the same.
        busy: of these, those in which each IPU does something.
        lower: the least that a run is expected to take, as a part of `cycles`.
        exact: whether the number of iterations of all loops is known.
        slot_cycles: of a slot of the longest pipeline; 0 without one.
    """

    program: CapturedProgram
    chip: ChipSpec
    ipus: tuple[IpuPlan, ...]
    cycles: int
    busy: tuple[float, ...]
    lower: float
    upper: float
    exact: bool
    slot_cycles: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether it fits on all IPUs."""
        return all(ipu.fits for ipu in self.ipus)

    @property
    def headroom(self) -> int:
        """Bytes left on the fullest IPU if all tiles were as full as its fullest; negative if over."""
        return min(((ipu.bytes_per_tile - ipu.max_tile_bytes) * len(ipu.tile_bytes) for ipu in self.ipus), default=0)

    @property
    def cycles_per_step(self) -> float:
        """Cycles per infeed element, or per run without infeeds."""
        return self.cycles / max(1.0, self.program.steps)

    @property
    def samples_per_second(self) -> float:
        """Samples per second of all replicas; 0 for a run without inputs."""
        return self.program.items / self.chip.seconds(self.cycles) if self.cycles else 0.0


def estimate(program: CapturedProgram, chip: ChipSpec) -> Estimate:
    """Plans a program's memory and timeline for a chip."""
    plans = tuple(plan_of(ipu, block, chip) for ipu, block in sorted(program.blocks.items()))
    timeline = timeline_of(program.blocks, chip, program.ipus, replicas=program.replicas)
    sums = _Sums()
    sums.add(timeline.entries, 1.0)
    busy = tuple(timeline.busy.get(plan.ipu, 0.0) for plan in plans)
    return Estimate(program, chip, plans, timeline.cycles, busy, *sums.error(), sums.exact, sums.slot_cycles)


class _Sums:
    """Total cycles with their error bounds."""

    def __init__(self) -> None:
        self._cycles = self._least = self._most = 0.0
        self.exact = True
        self.slot_cycles = 0.0

    def add(self, entries: Iterable[Entry], times: float) -> None:
        for entry in entries:
            self.exact &= entry.exact
            if entry.slots is not None:
                self.slot_cycles = max(self.slot_cycles, entry.slots.cycles)
            if entry.computation is None:
                self.add(entry.children, times * (entry.times if entry.kind == "loop" else 1.0))
                continue
            factor, cycles = ERROR_FACTORS[entry.computation.kind], times * entry.cycles
            self._cycles += cycles
            self._least += cycles / factor
            self._most += cycles * factor

    def error(self) -> tuple[float, float]:
        if not self._cycles:
            return 1.0, 1.0
        return self._least / self._cycles, self._most / self._cycles
