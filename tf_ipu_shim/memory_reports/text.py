"""Formats the memory report as text, at most 100 columns wide: a screen with the verdict, then details."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from tf_ipu_shim.machine.memory import (
    CATEGORIES,
    CODE_ERROR_FACTOR,
    LIBRARY_ERROR_FACTOR,
    IpuPlan,
    Owner,
    advice_lines,
    overflow_sentence,
)
from tf_ipu_shim.machine.memory.byte_text import format_bytes, format_percent
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR, Verdict
from tf_ipu_shim.machine.number_ranges import format_ranges
from tf_ipu_shim.memory_reports.records import NOT_MODELLED, NOT_MODELLED_WITH_CODE, DeviceReport, IpuReport, ReportData

WIDTH = 100
TOP = 5
"""The number of largest allocations that are shown, and of fullest IPUs if there are many."""
_MOST_ROWS = 8
"""IPUs that have a row on the first screen; of more IPUs, the fullest are shown."""
_CACHE = {"": "", "hit": "; from the executable cache", "miss": "; not in the executable cache before"}
_CODE = "code"
_MODES = {"xla": "XLA programs", "kernels": "TensorFlow's kernels"}
UNCOMPILED = (
    "No program was compiled, so there is no memory to model: ops in an ipu_scope ran one by one. Pass them to "
    "ipu_compiler.compile, a tf.function(jit_compile=True) or a Keras model in the scope of an IPUStrategy. "
    "tf-ipu run --profile DIR models them as they are."
)


def render_text(report: ReportData, top: int = TOP, verbose: bool = False) -> str:
    """Renders a report.

    Args:
        top: how many allocations are listed.
        verbose: whether it says how each program runs.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> max(map(len, render_text(tf_ipu_shim.memory_report()).splitlines())) <= 100
        True
    """
    lines = _wrap_text(f"IPU memory report (SDK {report.sdk}): {verdict(report)}", 0)
    if not report.devices:
        lines.append("No program has been compiled for an IPU under this configuration.")
    for device in report.devices:
        lines += ["", *_overview(device, top)]
    for device in report.devices:
        lines += ["", *_details(device, top, verbose)]
    if report.without_effect:
        lines += ["", "Options without effect on a simulated system:"]
        lines += [_shorten_name(f"  {path} = {value!r}") for path, value in report.without_effect]
    return "\n".join(lines)


def verdict(report: ReportData) -> str:
    """Returns in one sentence whether all programs fit, and how full the fullest IPU is."""
    used = [(device, ipu.ipu, ipu.modelled) for device in report.devices for ipu in device.ipus if ipu.modelled]
    if not used:
        return "no program."
    too_large, close = (_programs(report, one) for one in (Verdict.DOES_NOT_FIT, Verdict.CLOSE))
    if too_large:
        return f"does NOT fit: {too_large}."
    device, ipu, plan = max(used, key=lambda one: one[2].used_percent)
    several = len({id(plan) for device in report.devices for plan in device.programs}) > 1
    where = f" of {device.name}" if len(report.devices) > 1 else ""
    if close:
        return (
            f"close, with library temporaries: {close}. Without them, the fullest IPU, {ipu}{where}, needs "
            f"{_share(plan)}."
        )
    return f"{'all fit' if several else 'fits'}. The fullest IPU, {ipu}{where}, needs {_share(plan)}."


def _programs(report: ReportData, verdict: Verdict) -> str:
    """Returns the names of the programs with a verdict."""
    programs = (plan.program for device in report.devices for plan in device.programs if plan.verdict is verdict)
    return ", ".join(dict.fromkeys(programs))


def _share(plan: IpuPlan) -> str:
    return f"{format_bytes(plan.used_bytes)} of {format_bytes(plan.limit_bytes)} ({format_percent(plan.used_percent)})"


def _plans(device: DeviceReport) -> list[IpuPlan]:
    return [ipu.modelled for ipu in device.ipus if ipu.modelled is not None]


def _overview(device: DeviceReport, top: int) -> list[str]:
    """Returns the screen of a device: its IPUs, the categories of all together, the largest allocations."""
    attached = f"Poplar device {device.poplar_id}" if device.poplar_id is not None else "not attached"
    lines = [f"{device.name}: {len(device.ipus)} x {device.chip}, {attached}", "=" * WIDTH]
    lines += _format_advice(device)
    plans = _plans(device)
    if not plans:
        return [*lines, *_wrap_text(UNCOMPILED, 0)] if not device.programs else lines
    shown, remaining = _fullest(device.ipus, top)
    lines += ["Modelled: memory of the largest program at its largest step.", *_format_ipus(shown)]
    if remaining:
        least, most = remaining[-1], remaining[0]
        lines.append(f"  and {_count(len(remaining), 'IPU')} with {_share(least)} to {_share(most)}")
    every = "" if len(plans) == 1 else f" on the {len(plans)} IPUs together"
    total = sum(plan.used_bytes for plan in plans)
    lines += ["", *_wrap_text(f"{format_bytes(total)}{every}: {_categories(plans)}.", 0)]
    left_out = NOT_MODELLED_WITH_CODE if any(plan.code for plan in plans) else NOT_MODELLED
    lines += [*_wrap_text(f"Not counted: {left_out}.", 0), "", "Largest allocations:"]
    return lines + _format_allocations(plans, top)


def _fullest(ipus: Sequence[IpuReport], top: int) -> tuple[list[IpuReport], list[IpuPlan]]:
    """Returns the IPUs of the first screen, and the plans of the others, fullest first."""
    if len(ipus) <= _MOST_ROWS:
        return list(ipus), []
    used = sorted(((ipu, ipu.modelled) for ipu in ipus if ipu.modelled), key=lambda pair: -pair[1].used_percent)
    return [ipu for ipu, _ in used[:top]], [plan for _, plan in used[top:]]


def _format_ipus(ipus: Iterable[IpuReport]) -> list[str]:
    rows = [["IPU", "always live", "not always live", "peak", "limit", "used", "fullest tile", "program"]]
    for ipu in ipus:
        plan = ipu.modelled
        if plan is None:
            rows.append([str(ipu.ipu), *["-"] * 6, "(none)"])
            continue
        always_live = plan.always_live_bytes + plan.code_bytes
        sizes = [always_live, plan.not_always_live_bytes, plan.used_bytes, plan.limit_bytes]
        used = format_percent(plan.used_percent) if plan.fits else "TOO FULL"
        tile = f"{plan.max_tile}: {format_bytes(plan.max_tile_bytes)}"
        rows.append([str(ipu.ipu), *map(format_bytes, sizes), used, tile, ipu.program])
    return _format_table(rows, left_aligned={7})


def _categories(plans: Sequence[IpuPlan]) -> str:
    sums = {kind: sum(plan.categories.get(kind, 0) for plan in plans) for kind in CATEGORIES}
    sums[_CODE] = sum(plan.code_bytes for plan in plans)
    largest = sorted((kind for kind in sums if sums[kind]), key=lambda kind: -sums[kind])
    return ", ".join(f"{kind.replace('_', ' ')} {format_bytes(sums[kind])}" for kind in largest) or "nothing"


def _format_advice(device: DeviceReport) -> list[str]:
    """Returns for each program that does not fit the missing bytes, and actions that help."""
    lines = []
    for plan in device.programs:
        if plan.fits:
            continue
        lines += _wrap_text(overflow_sentence(plan), 0)
        if plan.savings:
            advice = advice_lines(plan)
            lines += [part for at, line in enumerate(advice) for part in _wrap_text(line.strip(), 2 if at else 0)]
        else:
            lines.append("Ask tf-ipu fit what would save most.")
        lines.append("")
    return lines


def _details(device: DeviceReport, top: int, verbose: bool) -> list[str]:
    """Returns everything else of a device."""
    lines = [f"Details of {device.name}", "-" * WIDTH, *_device_location(device)]
    plans = _plans(device)
    if len(device.ipus) > _MOST_ROWS and plans:
        lines += ["Each IPU:", *_format_ipus(device.ipus), ""]
    if plans:
        lines += ["At the largest step, by category:"]
        lines += _format_categories([(plan.ipu, {**plan.categories, _CODE: plan.code_bytes}) for plan in plans])
        if any(plan.remote for plan in plans):
            lines += ["", "In Streaming Memory, at all times, by category:"]
            lines += _format_categories([(plan.ipu, plan.remote) for plan in plans])
        if len(plans) > 1:
            lines += ["", "Largest allocations of each IPU:"]
            lines += _format_rows([(plan, owner) for plan in plans for owner in plan.owners[:top]])
        lines += [*_format_library_calls(plans), *_format_code(plans), *_format_verdicts(plans)]
    lines += _format_programs(device, verbose)
    return [*lines, "", *_format_measured(device)] if plans else lines + _format_measured(device)


def _format_measured(device: DeviceReport) -> list[str]:
    lines = ["Measured: what this process held and moved on the host."]
    rows = [["IPU", "live now", "peak", "variables (modelled)"]]
    for ipu in device.ipus:
        sizes = [ipu.measured_live_bytes, ipu.measured_peak_bytes, ipu.variable_bytes]
        rows.append([str(ipu.ipu), *map(format_bytes, sizes)])
    lines += _format_table(rows)
    lines.append(
        f"Host to device: {format_bytes(device.host_to_device.bytes)} in "
        f"{device.host_to_device.transfers} transfers. "
        f"Device to host: {format_bytes(device.device_to_host.bytes)} in {device.device_to_host.transfers}."
    )
    lines.append(f"Programs lowered: {device.programs_lowered}. Program runs: {device.programs_run}.")
    return lines + _format_exchanges(device)


def _device_location(device: DeviceReport) -> list[str]:
    """Returns the IPUs of the shards, unless their numbers are equal."""
    lines = []
    physical = [ipu.physical for ipu in device.ipus]
    if physical != list(range(len(physical))):
        listed = ", ".join(map(str, physical))
        several = f"IPUs 0 to {len(physical) - 1} here are the system's IPUs {listed}."
        lines.append(several if len(physical) > 1 else f"IPU 0 here is the system's IPU {listed}.")
    for plan in device.programs:
        for replica, ipus in enumerate(plan.shard_ipus):
            if list(ipus) != sorted(ipus):
                replica_text = f" of replica {replica}" if len(plan.shard_ipus) > 1 else ""
                lines.append(f"The shards{replica_text} of {plan.program} are on IPUs {', '.join(map(str, ipus))}.")
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ")]


def _format_categories(sizes: Sequence[tuple[int, Mapping[str, int]]]) -> list[str]:
    """Categories that no IPU has are left out; as many tables as the width requires."""
    columns: list[list[str]] = []
    for kind in (*CATEGORIES, _CODE):
        if any(by_kind.get(kind) for _, by_kind in sizes):
            columns.append([kind.replace("_", " "), *(format_bytes(by_kind.get(kind, 0)) for _, by_kind in sizes)])
    first = ["IPU", *(str(ipu) for ipu, _ in sizes)]
    lines: list[str] = []
    while columns:
        shown, width = [first], max(map(len, first)) + 2
        while columns and width + max(map(len, columns[0])) + 2 <= WIDTH:
            shown.append(columns.pop(0))
            width += max(map(len, shown[-1])) + 2
        lines += _format_table(list(zip(*shown)))
    return lines or ["  (nothing)"]


def _format_allocations(plans: Sequence[IpuPlan], top: int) -> list[str]:
    """Returns the largest of all IPUs; replicas and shards with equal ones share a row."""
    rows: dict[Owner, list[IpuPlan]] = {}
    for plan in plans:
        for owner in plan.owners:
            rows.setdefault(owner, []).append(plan)
    largest = sorted(rows.items(), key=lambda row: -row[0].bytes)[:top]
    table = [["IPU", "size", "kind", "name", "line"]]
    for owner, on in largest:
        table.append([format_ranges([plan.ipu for plan in on]), format_bytes(owner.bytes), *_named(owner)])
    return _format_table(table, left_aligned={2, 3, 4})


def _format_rows(owners: Iterable[tuple[IpuPlan, Owner]]) -> list[str]:
    rows = [["IPU", "size", "kind", "name", "line"]]
    rows += [[str(plan.ipu), format_bytes(owner.bytes), *_named(owner)] for plan, owner in owners]
    return _format_table(rows, left_aligned={2, 3, 4})


def _named(owner: Owner) -> list[str]:
    return [owner.kind.replace("_", " "), owner.name, owner.line or ""]


def _format_library_calls(plans: Sequence[IpuPlan]) -> list[str]:
    """Formats the requested table of library calls separately, because its figures are less certain."""
    rows = [["IPU", "on a tile", "least", "most", "may use", "operands", "partial sums", "parts", "call"]]
    for plan in plans:
        call = plan.library
        if call is not None:
            sizes = [call.tile_bytes, call.tile_bytes / LIBRARY_ERROR_FACTOR, call.tile_bytes * LIBRARY_ERROR_FACTOR]
            sizes += [call.limit_bytes, call.operand_bytes, call.partial_bytes]
            rows.append([str(plan.ipu), *map(format_bytes, sizes), str(call.parts), call.name])
    if len(rows) == 1:
        return []
    heading = "Temporaries inside the largest library call, on one tile, in no figure above:"
    return ["", heading, *_format_table(rows, left_aligned={8})]


def _format_code(plans: Sequence[IpuPlan]) -> list[str]:
    """Returns the parts of the IPU with most code."""
    code = max(plans, key=lambda plan: plan.code_tile_bytes).code
    if not code:
        return []
    total = sum(part.tile_bytes for part in code)
    span = f"{format_bytes(total / CODE_ERROR_FACTOR)} to {format_bytes(total * CODE_ERROR_FACTOR)}"
    heading = f"Code and stacks, always live, {format_bytes(total)} of a tile ({span}):"
    rows = [["on a tile", "part"], *([format_bytes(part.tile_bytes), part.name] for part in code)]
    return ["", heading, *_format_table(rows, left_aligned={1})]


def _format_verdicts(plans: Sequence[IpuPlan]) -> list[str]:
    """Returns the verdict on each IPU with code and library temporaries, if these are known."""
    rows = [["IPU", "tensors", "library", "code", "expected", "limit", "verdict"]]
    for plan in plans:
        if plan.code:
            sizes = [plan.max_tile_bytes, plan.library_tile_bytes, plan.code_tile_bytes, plan.expected_tile_bytes]
            rows.append([str(plan.ipu), *map(format_bytes, [*sizes, plan.bytes_per_tile]), plan.verdict.value])
    if len(rows) == 1:
        return []
    heading = f"Does it fit? The fullest tile at the peak (error factor {PEAK_ERROR_FACTOR}):"
    return ["", heading, *_format_table(rows)]


def _format_programs(device: DeviceReport, verbose: bool) -> list[str]:
    lines = []
    if len(device.programs) > 1:
        rows = [["program", "IPUs", "peak of all", "fullest IPU"]]
        for plan in device.programs:
            largest = max(plan.ipus, key=lambda ipu: ipu.used_bytes, default=None)
            share = "-" if largest is None else format_percent(largest.used_percent)
            rows.append([plan.program, str(len(plan.ipus)), format_bytes(plan.peak_bytes), share])
        lines += ["", "Programs (one at a time is on the IPUs):", *_format_table(rows, left_aligned={0})]
    if device.programs and verbose:
        lines += ["", "Execution modes (the modelled figures are the same in both):"]
        for plan in device.programs:
            summary = f"{plan.program}: by {_MODES[plan.mode]}, {plan.mode_reason}{_CACHE[plan.cache]}"
            lines += _wrap_text(summary, 2)
    for plan in device.programs:
        for name, reason in plan.coarse:
            lines += ["", *textwrap.wrap(f"Coarse figure for {name}:", WIDTH), _truncate(f"  {reason}", WIDTH)]
    return lines


def _wrap_text(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _count(number: int, name: str) -> str:
    return f"{number} more {name}{'s' if number > 1 else ''}"


def _format_exchanges(device: DeviceReport) -> list[str]:
    if not device.exchange:
        return []
    ipus = sorted({ipu for pair in device.exchange for ipu in pair})
    if len(ipus) > 7:  # a matrix would be too wide
        rows = [["from IPU", "to IPU", "moved", "transfers"]]
        for (source, to), moved in sorted(device.exchange.items()):
            rows.append([str(source), str(to), format_bytes(moved.bytes), str(moved.transfers)])
    else:
        rows = [["from \\ to", *(f"IPU {ipu}" for ipu in ipus)]]
        for source in ipus:
            row = [device.exchange.get((source, to)) for to in ipus]
            rows.append([f"IPU {source}", *("-" if moved is None else format_bytes(moved.bytes) for moved in row)])
    return ["Exchanged between IPUs:", *_format_table(rows)]


def _shorten_name(text: str) -> str:
    """Returns the beginning of an option's line, which names it."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _truncate(text: str, width: int) -> str:
    """Shortens a long name to its end, which is more specific than its beginning."""
    return text if len(text) <= width else f"...{text[len(text) - width + 3 :]}"


def _format_table(rows: Sequence[Sequence[str]], left_aligned: set[int] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """Formats columns at their needed width; left-aligned names are cut if the table is too wide."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    over = sum(widths) + 2 * len(widths) - WIDTH
    while over > 0 and left_aligned:
        widest = max(left_aligned, key=lambda column: widths[column])
        if widths[widest] <= 12:
            break
        widths[widest] -= 1
        over -= 1
    lines = []
    for row in rows:
        cells = [_truncate(cell, width) for cell, width in zip(row, widths)]
        padded = [c.ljust(w) if i in left_aligned else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return lines
