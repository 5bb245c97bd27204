"""Writes the remarks below a table of `tf-ipu fit`: limits of a program, and the contents of an almost full tile."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.capacity.estimate import Estimate
from tf_ipu_shim.machine.launches import ACCEPTABLE, DOMINATES, MOST_STEPS, share_of, steps_for
from tf_ipu_shim.machine.memory import Verdict
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.machine.memory.out_of_memory import fullest_tile_sentence
from tf_ipu_shim.runtime.captured_programs import CapturedProgram


def limits(program: CapturedProgram, estimates: Sequence[Estimate]) -> list[str]:
    """Returns the systems on which launches or the host link dominate, with the actions that help, once each."""
    lines = []
    results = list({result.chip.name: result for result in estimates}.values())
    if launched := [result for result in results if result.launch_share >= DOMINATES and result.cycles_per_step]:
        lines.append(_launch_remark(program, launched))
    if fed := [result for result in results if result.host_share >= DOMINATES]:
        lines.append(_host_remark(program, fed))
    return lines


def _launch_remark(program: CapturedProgram, estimates: Sequence[Estimate]) -> str:
    """Returns the steps of a run that make launches small; of a tiny program, what is left at `MOST_STEPS`."""
    share = _percent([result.launch_share for result in estimates])
    dominate = f"  {_on(estimates)} launches dominate: {share} of a run."
    seconds = [result.chip.seconds(result.cycles_per_step) for result in estimates]
    steps = min(MOST_STEPS, max(map(steps_for, seconds)))
    if steps <= program.steps:
        return f"{dominate} A run has {program.steps:,.0f} steps already: larger mini-batches help."
    how = "set steps_per_execution in compile()" if program.is_keras else "put them into ipu.loops.repeat()"
    left = [share_of(steps, step) for step in seconds]
    rest = "" if max(left) <= ACCEPTABLE + 0.01 else f" They are {_percent(left)} then: a step is too small for an IPU."
    return f"{dominate} Run {steps:,} steps at a time: {how}.{rest}"


def _host_remark(program: CapturedProgram, estimates: Sequence[Estimate]) -> str:
    share = _percent([result.host_share for result in estimates])
    remote = sum(sum(ipu.remote.values()) for ipu in program.plan.ipus)
    offloaded, advice = "", ""
    if remote:
        offloaded = "Streaming Memory, "
        advice = (
            f"{format_bytes(remote)} are in Streaming Memory and copied for each update: keep them on the chip if they "
            "fit (offload_weight_update_variables=False), or accumulate more mini-batches. "
        )
    return (
        f"  {_on(estimates)} {offloaded}input and output dominate: {share} of the cycles. {advice}Feed smaller dtypes "
        "(uint8, float16), or overlap the copies: io_tiles.num_io_tiles and io_tiles.place_ops_on_io_tiles."
    )


def _on(estimates: Sequence[Estimate]) -> str:
    return f"On {', '.join(result.chip.name for result in estimates)}"


def _percent(shares: Sequence[float]) -> str:
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{least} %" if least == most else f"{least} to {most} %"


def closest(estimates: Sequence[Estimate]) -> list[str]:
    """Returns the largest contributions to the fullest tile of a program that is close to its memory."""
    close = [result for result in estimates if result.verdict is Verdict.CLOSE]
    lines = []
    for chip, result in {result.chip.name: result for result in close}.items():
        full = max(result.ipus, key=lambda ipu: ipu.expected_tile_bytes)
        lines.append(f"  Close on {chip}: IPU {full.ipu}, {fullest_tile_sentence(full)}")
    return lines
