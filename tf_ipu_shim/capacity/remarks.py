"""Remarks below a table of `tf-ipu fit`: what limits a program, and what fills a tile that is almost full."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.capacity.estimate import Estimate
from tf_ipu_shim.machine.launches import DOMINATES, steps_for
from tf_ipu_shim.machine.memory import Verdict
from tf_ipu_shim.machine.memory.out_of_memory import fullest_tile_sentence
from tf_ipu_shim.runtime.captured_programs import CapturedProgram


def limits(program: CapturedProgram, estimates: Sequence[Estimate]) -> list[str]:
    """Returns the systems on which launches or the host link dominate, with the actions that help."""
    lines = []
    for chip, result in {result.chip.name: result for result in estimates}.items():
        if result.launch_share >= DOMINATES:
            steps = steps_for(result.chip.seconds(result.cycles_per_step))
            how = "set steps_per_execution in compile()" if program.is_keras else "put them into ipu.loops.repeat()"
            lines.append(
                f"  On {chip} launches dominate: {100 * result.launch_share:.0f} % of a run. Run {steps:,} steps at a "
                f"time: {how}."
            )
        if result.host_share >= DOMINATES:
            lines.append(
                f"  On {chip} input and output dominate: {100 * result.host_share:.0f} % of the cycles. Feed smaller "
                "dtypes (uint8, float16), or overlap the copies: io_tiles.num_io_tiles and "
                "io_tiles.place_ops_on_io_tiles."
            )
    return lines


def closest(estimates: Sequence[Estimate]) -> list[str]:
    """Returns the largest contributions to the fullest tile of a program that is close to its memory."""
    close = [result for result in estimates if result.verdict is Verdict.CLOSE]
    lines = []
    for chip, result in {result.chip.name: result for result in close}.items():
        full = max(result.ipus, key=lambda ipu: ipu.expected_tile_bytes)
        lines.append(f"  Close on {chip}: IPU {full.ipu}, {fullest_tile_sentence(full)}")
    return lines
