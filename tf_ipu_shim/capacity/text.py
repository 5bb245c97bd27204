"""Formats the answer of `tf-ipu fit` as tables, or as records for JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tf_ipu_shim.capacity import remarks, stages
from tf_ipu_shim.capacity.candidates import smallest
from tf_ipu_shim.capacity.estimate import Estimate, estimate
from tf_ipu_shim.machine.chips import CHIPS, ChipSpec
from tf_ipu_shim.machine.memory import CODE_ERROR_FACTOR, IpuPlan, Verdict, advice_lines
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR
from tf_ipu_shim.machine.systems import System
from tf_ipu_shim.runtime.captured_programs import CapturedProgram

SHOWN = 4
"""The number of programs with tables: half of them use the most memory, half run longest."""
_ONE_LEFT = "The systems count one smaller program too, which is not shown."
_CLOSE = " It is close: on hardware they may not fit."
_SPEEDS = ("device only, items/s", "end to end, items/s")
_HEAD = ("system", "chip", "IPUs", "fits", "headroom", "cycles a step", "error", *_SPEEDS)


def to_text(programs: Sequence[CapturedProgram], systems: Sequence[System], top: int = SHOWN) -> str:
    """Returns the smallest system, then tables: per program a row per system, and its memory by IPU.

    Args:
        programs: the programs that the script compiled.
        systems: those to try.
        top: how many programs have tables.
    """
    if not programs:
        return (
            "No program was compiled for IPUs: ops in an ipu_scope run one by one. Pass them to "
            "ipu_compiler.compile, a tf.function(jit_compile=True) or a Keras model in the scope of an IPUStrategy."
        )
    estimates: dict[tuple[int, str], Estimate] = {}

    def estimate_on(program: CapturedProgram, chip: ChipSpec) -> Estimate:
        key = id(program), chip.name
        if key not in estimates:
            estimates[key] = estimate(program, chip)
        return estimates[key]

    first = systems[0].chip if systems else CHIPS["gc200"]
    largest = sorted(programs, key=lambda captured: -captured.plan.peak_bytes)
    by_time = sorted(programs, key=lambda captured: -estimate_on(captured, first).cycles)
    shown = [captured for captured in programs if captured in (*largest[: (top + 1) // 2], *by_time[: top // 2])]
    lines: list[str] = []
    for program in shown:
        lines += _program(program, systems, [estimate_on(program, system.chip) for system in systems])
    if len(programs) > len(shown):
        remaining = len(programs) - len(shown)
        lines.append(f"And {remaining} smaller programs, which count too." if remaining > 1 else _ONE_LEFT)
    lines = [_smallest(programs, estimate_on), "", *lines]
    lines.append(f"fits counts code and library temporaries, error factor {PEAK_ERROR_FACTOR}; headroom does not.")
    return "\n".join(lines)


def _smallest(programs: Sequence[CapturedProgram], estimate_on: Callable[[CapturedProgram, ChipSpec], Estimate]) -> str:
    """Returns the sentence about the smallest system for all programs."""
    ipus = max(program.ipus for program in programs)
    system = smallest(ipus, lambda chip: all(estimate_on(program, chip).fits for program in programs))
    if system is None:
        return _nothing_fits(ipus, any(program.plan.savings for program in programs))
    is_close = any(estimate_on(program, system.chip).verdict is Verdict.CLOSE for program in programs)
    return f"Smallest system on which all programs fit: {system.name}, {system.title}.{_CLOSE if is_close else ''}"


def to_records(programs: Sequence[CapturedProgram], systems: Sequence[System]) -> dict[str, object]:
    """Returns the contents of `to_text` as records; sizes in bytes."""
    program_records = [
        {
            "program": program.name,
            "ipus": program.ipus,
            "replicas": program.replicas,
            "steps": program.steps,
            "systems": [_system_record(program, system) for system in systems],
        }
        for program in programs
    ]
    ipus = max((program.ipus for program in programs), default=0)
    best = smallest(ipus, lambda chip: all(estimate(program, chip).fits for program in programs)) if programs else None
    return {"programs": program_records, "smallest_system": best and best.name}


def _system_record(program: CapturedProgram, system: System) -> dict[str, object]:
    """Returns the estimate of a program on a system."""
    estimated = estimate(program, system.chip)
    enough = system.num_ipus >= program.ipus
    return {
        "system": system.name,
        "chip": system.chip.name,
        "ipus": system.num_ipus,
        "fits": enough and estimated.fits,
        "verdict": estimated.verdict.value if enough else "too few IPUs",
        "headroom_bytes": estimated.headroom,
        "cycles": estimated.cycles,
        "cycles_per_step": estimated.cycles_per_step,
        "slot_cycles": estimated.slot_cycles,
        "cycles_factor": [1 / estimated.error_factor, estimated.error_factor],
        "regime": estimated.regime,
        "items_per_second": estimated.samples_per_second,
        "items_per_second_end_to_end": estimated.samples_per_second_end_to_end,
        "end_to_end_factor": [1 / estimated.error_factor_end_to_end, estimated.error_factor_end_to_end],
        "regime_end_to_end": estimated.regime_end_to_end,
        "launch_share": estimated.launch_share,
        "host_share": estimated.host_share,
        "by_ipu": [_ipu_record(ipu) for ipu in estimated.ipus],
    }


def _ipu_record(ipu: IpuPlan) -> dict[str, object]:
    return {
        **ipu.figures(),
        "tile_error_factor": PEAK_ERROR_FACTOR,
        "code_error_factor": CODE_ERROR_FACTOR,
        "library_bytes": ipu.library_tile_bytes * len(ipu.tile_bytes),
        "variable_bytes": sum(ipu.categories[kind] for kind in ("weight", "optimizer_state", "accumulator")),
    }


def _program(program: CapturedProgram, systems: Sequence[System], estimates: Sequence[Estimate]) -> list[str]:
    fed = f", {_counted(program.items, 'item')} in {_counted(program.steps, 'step')} a run" if program.items else ""
    replicas = f", {program.replicas} replicas" if program.replicas > 1 else ""
    rows = [_HEAD, *(_row(program, system, estimated) for system, estimated in zip(systems, estimates))]
    lines = [f"{program.name}: {_counted(program.ipus, 'IPU')}{replicas}{fed}", *_table(rows)]
    if any(not estimated.exact for estimated in estimates):
        lines.append("  Loops whose iterations are not known count 16.")
    if program.plan.coarse:
        lines.append(f"  {len(program.plan.coarse)} of its parts could not be analysed: more memory may be needed.")
    if len(program.blocks) > 1:
        chips = {estimated.chip.name: estimated for estimated in estimates}
        head = ("IPU", *(f"{name}: fullest tile, busy" for name in chips))
        ipus = [ipu.ipu for ipu in next(iter(chips.values())).ipus] if chips else []
        memory = [
            (str(ipu_id), *(f"{_full(chip, index):.1f} %, {_busy(chip, index):.0f} %" for chip in chips.values()))
            for index, ipu_id in enumerate(ipus)
        ]
        lines += _table([head, *memory])
    lines += [*remarks.limits(program, estimates), *remarks.closest(estimates)]
    return [*lines, *_advice(program), *_stages(program, estimates), ""]


def _nothing_fits(ipus: int, has_advice: bool) -> str:
    change = "Follow the advice below" if has_advice else "Divide the model over more IPUs, or make the batch smaller"
    return (
        f"On {_counted(ipus, 'IPU')} the programs are too large for every system. {change}, and run tf-ipu fit again."
    )


def _advice(program: CapturedProgram) -> list[str]:
    """Returns advice for a program that does not fit its chip."""
    advice = advice_lines(program.plan, program.is_keras)
    return (
        [f"  On {program.plan.chip} it does not fit. {advice[0]}", *(f"  {line}" for line in advice[1:])]
        if advice
        else []
    )


def _stages(program: CapturedProgram, estimates: Sequence[Estimate]) -> list[str]:
    """Returns the split for the first chip that has one, starting with the program's own chip."""
    chips = sorted(
        {estimated.chip: estimated.fits for estimated in estimates}.items(),
        key=lambda estimated: estimated[0].title != program.plan.chip,
    )
    for chip, fits in chips:
        better = stages.better_split(program, chip, fits)
        if better is not None:
            return stages.to_text(better, chip)
    return []


def _full(estimated: Estimate, index: int) -> float:
    ipu = estimated.ipus[index]
    return 100 * ipu.max_tile_bytes / ipu.bytes_per_tile


def _busy(estimated: Estimate, index: int) -> float:
    """Returns an IPU's cycles relative to the busiest one; balanced stages are near 100 %."""
    return 100 * estimated.busy[index] / (max(estimated.busy) or 1.0)


def _row(program: CapturedProgram, system: System, estimated: Estimate) -> tuple[str, ...]:
    if system.num_ipus < program.ipus:
        return system.name, system.chip.name, str(system.num_ipus), "too few IPUs", "", "", "", "", ""
    speeds = ["", ""]
    if program.items:
        speeds = [
            _with_bar(estimated.samples_per_second, estimated.error_factor),
            _with_bar(estimated.samples_per_second_end_to_end, estimated.error_factor_end_to_end),
        ]
    return (
        system.name,
        system.chip.name,
        str(system.num_ipus),
        _fits(estimated),
        format_bytes(estimated.headroom, True),
        f"{estimated.cycles_per_step:,.0f}",
        f"x {estimated.error_factor} ({estimated.regime})",
        *speeds,
    )


def _with_bar(rate: float, factor: float) -> str:
    return f"{_rounded(rate)} ({_rounded(rate / factor)} to {_rounded(rate * factor)})"


def _fits(estimated: Estimate) -> str:
    """Returns `yes`, or the verdict with the IPUs that have it."""
    if estimated.verdict is Verdict.FITS:
        return "yes"
    ipu_ids = ", ".join(str(ipu.ipu) for ipu in estimated.ipus if ipu.verdict is estimated.verdict)
    return f"{'close' if estimated.verdict is Verdict.CLOSE else 'no'}: IPU {ipu_ids}"


def _counted(count: float, noun: str) -> str:
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"


def _rounded(value: float) -> str:
    """Formats a number with three significant digits."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
