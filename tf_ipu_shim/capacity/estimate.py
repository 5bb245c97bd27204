"""Estimates a captured program's memory and cycles on a given chip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tf_ipu_shim.cycle_model import Entry, error_bars, timeline_of, with_library_and_code
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.launches import DOMINATES, LAUNCH_SECONDS, share_of
from tf_ipu_shim.machine.memory import IpuPlan, Verdict, plan_of
from tf_ipu_shim.machine.memory.verdict import worst
from tf_ipu_shim.runtime.captured_programs import CapturedProgram


class Estimate(NamedTuple):
    """A program's estimate on a chip.

    Args:
        ipus: memory of each IPU of a replica; all replicas are the same.
        busy: of these, the cycles in which each IPU does something.
        host_cycles: of these, the cycles in which the busiest IPU copies to or from the host.
        exact: whether the number of iterations of all loops is known.
        slot_cycles: the cycles of a slot of the longest pipeline; 0 without one.
    """

    program: CapturedProgram
    chip: ChipSpec
    ipus: tuple[IpuPlan, ...]
    cycles: int
    busy: tuple[float, ...]
    host_cycles: float
    exact: bool
    slot_cycles: float = 0.0

    @property
    def fits(self) -> bool:
        """Returns whether its tensors fit on all IPUs."""
        return all(ipu.fits for ipu in self.ipus)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its IPUs."""
        return worst([ipu.verdict for ipu in self.ipus])

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
        """Samples per second of all replicas while the IPUs run; 0 for a run without inputs."""
        return self.program.items / self.chip.seconds(self.cycles) if self.cycles else 0.0

    @property
    def samples_per_second_end_to_end(self) -> float:
        """The same with the launch of each run; the script prepares its data at the same time."""
        return self.program.items / (self.chip.seconds(self.cycles) + LAUNCH_SECONDS)

    @property
    def launch_share(self) -> float:
        """The part of a run that is its launch."""
        return share_of(1, self.chip.seconds(self.cycles))

    @property
    def host_share(self) -> float:
        """The part of the cycles in which data moves over the host link."""
        return min(1.0, self.host_cycles / self.cycles) if self.cycles else 0.0

    @property
    def regime(self) -> str:
        """The regime of `cycle_model.error_bars` that limits the program between two launches."""
        return error_bars.regime_of(self.cycles_per_step, self.host_share)

    @property
    def error_factor(self) -> float:
        """The real cycles are expected between these divided by the factor and times it."""
        return error_bars.BARS[self.regime]

    @property
    def regime_end_to_end(self) -> str:
        """The same, launches included."""
        return error_bars.LAUNCH if self.launch_share >= DOMINATES else self.regime

    @property
    def error_factor_end_to_end(self) -> float:
        """The error factor of the rate end to end."""
        return error_bars.BARS[self.regime_end_to_end]


def estimate(program: CapturedProgram, chip: ChipSpec) -> Estimate:
    """Plans a program's memory and timeline for a chip."""
    plans = tuple(
        with_library_and_code(plan_of(ipu, block, chip), block, chip) for ipu, block in sorted(program.blocks.items())
    )
    timeline = timeline_of(program.blocks, chip, program.ipus, replicas=program.replicas)
    sums = _Sums()
    sums.add(timeline.entries, 1.0)
    busy = tuple(timeline.busy.get(plan.ipu, 0.0) for plan in plans)
    return Estimate(
        program, chip, plans, timeline.cycles, busy, max(sums.host.values(), default=0.0), sums.exact, sums.slot_cycles
    )


class _Sums:
    """Cycles of host copies by IPU, and other figures of a timeline."""

    def __init__(self) -> None:
        self.host: dict[int, float] = {}
        self.exact = True
        self.slot_cycles = 0.0

    def add(self, entries: Iterable[Entry], times: float) -> None:
        for entry in entries:
            self.exact &= entry.exact
            if entry.slots is not None:
                self.slot_cycles = max(self.slot_cycles, entry.slots.cycles)
            if entry.kind == "host":
                for ipu in entry.ipus:
                    self.host[ipu] = self.host.get(ipu, 0.0) + times * entry.cycles
            self.add(entry.children, times * (entry.times if entry.kind == "loop" else 1.0))
