"""Formats the memory report as text, at most 100 columns wide."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

from tf_ipu_shim.machine.memory import CATEGORIES, CODE_ERROR_FACTOR, LIBRARY_ERROR_FACTOR, IpuPlan, advice_lines
from tf_ipu_shim.memory_reports.records import NOT_MODELLED, DeviceReport, ReportData

WIDTH = 100
_OWNERS_SHOWN = 5
_CACHE = {"": "", "hit": "; from the executable cache", "miss": "; not in the executable cache before"}
_WAYS = {"xla": "XLA programs", "kernels": "TensorFlow's kernels"}


def render_text(report: ReportData) -> str:
    """Renders a report.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> max(map(len, render_text(tf_ipu_shim.memory_report()).splitlines())) <= 100
        True
    """
    lines = [f"IPU memory report (SDK {report.sdk})"]
    if not report.devices:
        lines.append("No program has been compiled for an IPU under this configuration.")
    for device in report.devices:
        lines += ["", *_format_device(device)]
    if report.without_effect:
        lines += ["", "Options without effect on a simulated system:"]
        lines += [_shorten_name(f"  {path} = {value!r}") for path, value in report.without_effect]
    return "\n".join(lines)


def _format_device(device: DeviceReport) -> list[str]:
    attached = f"Poplar device {device.poplar_id}" if device.poplar_id is not None else "not attached"
    count = len(device.ipus)
    lines = [f"{device.name}: {count} x {device.chip}, {attached}", "=" * WIDTH, *_device_location(device)]
    lines += ["Modelled: what the programs need on the chip, in bytes. Not counted:", f"  {NOT_MODELLED}."]
    rows = [["IPU", "always live", "not always live", "peak", "limit", "used", "fullest tile", "program"]]
    for ipu in device.ipus:
        plan = ipu.modelled
        if plan is None:
            rows.append([str(ipu.ipu), *["-"] * 6, "(none)"])
            continue
        tile = f"{plan.max_tile}: {_format_number(plan.max_tile_bytes)}"
        sizes = [plan.always_live_bytes, plan.not_always_live_bytes, plan.peak_bytes, plan.limit_bytes]
        used = f"{plan.percent:.2f} %" if plan.fits else "TOO FULL"
        rows.append([str(ipu.ipu), *map(_format_number, sizes), used, tile, ipu.program])
    lines += _format_table(rows, left_aligned={7})
    plans = [ipu.modelled for ipu in device.ipus if ipu.modelled is not None]
    if plans:
        lines += ["", "At the largest step, by category:"]
        lines += _format_categories([(plan.ipu, plan.categories) for plan in plans])
        if any(plan.remote for plan in plans):
            lines += ["", "In Streaming Memory, at all times, by category:"]
            lines += _format_categories([(plan.ipu, plan.remote) for plan in plans])
        lines += ["", "Largest allocations at that step:", *_format_allocations(device)]
        lines += [*_format_library_calls(plans), *_format_code(plans)]
    lines += _format_programs(device)
    lines += ["", "Measured: what this process held and moved on the host, in bytes."]
    rows = [["IPU", "live now", "peak", "variables (modelled)"]]
    for ipu in device.ipus:
        sizes = [ipu.measured_live_bytes, ipu.measured_peak_bytes, ipu.variable_bytes]
        rows.append([str(ipu.ipu), *map(_format_number, sizes)])
    lines += _format_table(rows)
    lines.append(
        f"Host to device: {_format_number(device.host_to_device.bytes)} in "
        f"{device.host_to_device.transfers} transfers. "
        f"Device to host: {_format_number(device.device_to_host.bytes)} in {device.device_to_host.transfers}."
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
                which = f" of replica {replica}" if len(plan.shard_ipus) > 1 else ""
                lines.append(f"The shards{which} of {plan.program} are on IPUs {', '.join(map(str, ipus))}.")
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ")]


def _format_categories(sizes: Sequence[tuple[int, Mapping[str, int]]]) -> list[str]:
    """Categories that no IPU has are left out; as many tables as the width wants."""
    columns: list[list[str]] = []
    for kind in CATEGORIES:
        if any(by_kind.get(kind) for _, by_kind in sizes):
            columns.append([kind.replace("_", " "), *(_format_number(by_kind.get(kind, 0)) for _, by_kind in sizes)])
    first = ["IPU", *(str(ipu) for ipu, _ in sizes)]
    lines: list[str] = []
    while columns:
        shown, width = [first], max(map(len, first)) + 2
        while columns and width + max(map(len, columns[0])) + 2 <= WIDTH:
            shown.append(columns.pop(0))
            width += max(map(len, shown[-1])) + 2
        lines += _format_table(list(zip(*shown)))
    return lines or ["  (nothing)"]


def _format_allocations(device: DeviceReport) -> list[str]:
    rows = [["IPU", "bytes", "kind", "name", "line"]]
    for ipu in device.ipus:
        for owner in ipu.modelled.owners[:_OWNERS_SHOWN] if ipu.modelled is not None else ():
            rows.append([str(ipu.ipu), _format_number(owner.bytes), owner.kind, owner.name, owner.line or ""])
    return _format_table(rows, left_aligned={2, 3, 4})


def _format_library_calls(plans: Sequence[IpuPlan]) -> list[str]:
    """Its own table, where it was asked for: what it says is much less certain than the rest."""
    rows = [["IPU", "on a tile", "least", "most", "may use", "operands", "partial sums", "parts", "call"]]
    for plan in plans:
        call = plan.library
        if call is not None:
            least, most = call.tile_bytes / LIBRARY_ERROR_FACTOR, call.tile_bytes * LIBRARY_ERROR_FACTOR
            sizes = [call.tile_bytes, math.floor(least), math.ceil(most), call.limit_bytes]
            sizes += [call.operand_bytes, call.partial_bytes, call.parts]
            rows.append([str(plan.ipu), *map(_format_number, sizes), call.name])
    if len(rows) == 1:
        return []
    heading = "Temporaries inside the largest library call, bytes of a tile, in no figure above:"
    return ["", heading, *_format_table(rows, left_aligned={8})]


def _format_code(plans: Sequence[IpuPlan]) -> list[str]:
    """Returns the same for each IPU and program."""
    code = next((plan.code for plan in plans if plan.code), ())
    if not code:
        return []
    total = sum(part.tile_bytes for part in code)
    least, most = math.floor(total / CODE_ERROR_FACTOR), math.ceil(total * CODE_ERROR_FACTOR)
    span = f"{_format_number(least)} to {_format_number(most)}"
    heading = f"Code and stacks, {_format_number(total)} bytes of a tile ({span}), in no figure above:"
    rows = [["on a tile", "part"], *([_format_number(part.tile_bytes), part.name] for part in code)]
    return ["", heading, *_format_table(rows, left_aligned={1})]


def _format_programs(device: DeviceReport) -> list[str]:
    lines = []
    if len(device.programs) > 1:
        rows = [["program", "IPUs", "peak of all", "largest IPU"]]
        for plan in device.programs:
            largest = max(plan.ipus, key=lambda ipu: ipu.peak_bytes, default=None)
            share = "-" if largest is None else f"{largest.percent:.2f} %"
            rows.append([plan.program, str(len(plan.ipus)), _format_number(plan.peak_bytes), share])
        lines += ["", "Programs (one at a time is on the IPUs):", *_format_table(rows, left_aligned={0})]
    if device.programs:
        lines += ["", "Execution modes (the modelled figures are the same in both):"]
        for plan in device.programs:
            text = f"{plan.program}: by {_WAYS[plan.way]}, {plan.way_reason}{_CACHE[plan.cache]}"
            lines += _wrap_text(text, 2)
    for plan in device.programs:
        if plan.savings:
            lines += ["", *_wrap_text(f"{plan.program} does not fit. {advice_lines(plan)[0]}", 0)]
            lines += [part for line in advice_lines(plan)[1:] for part in _wrap_text(line.strip(), 2)]
        elif not plan.fits:
            lines += ["", *_wrap_text(f"{plan.program} does not fit. Ask tf-ipu fit what would save most.", 0)]
        for name, reason in plan.coarse:
            lines += ["", *textwrap.wrap(f"Coarse figure for {name}:", WIDTH), _truncate(f"  {reason}", WIDTH)]
    return lines


def _wrap_text(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _format_exchanges(device: DeviceReport) -> list[str]:
    if not device.exchange:
        return []
    places = sorted({ipu for pair in device.exchange for ipu in pair})
    if len(places) > 7:  # a matrix would be too wide
        rows = [["from IPU", "to IPU", "bytes", "transfers"]]
        for (source, to), moved in sorted(device.exchange.items()):
            rows.append([str(source), str(to), _format_number(moved.bytes), str(moved.transfers)])
    else:
        rows = [["from \\ to", *(f"IPU {ipu}" for ipu in places)]]
        for source in places:
            row = [device.exchange.get((source, to)) for to in places]
            rows.append([f"IPU {source}", *("-" if moved is None else _format_number(moved.bytes) for moved in row)])
    return ["Exchanged between IPUs:", *_format_table(rows)]


def _format_number(value: int) -> str:
    return f"{value:,}"


def _shorten_name(text: str) -> str:
    """Returns the beginning of an option's line, which names it."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _truncate(text: str, width: int) -> str:
    """Returns the end of a long name tells more than its beginning."""
    return text if len(text) <= width else f"...{text[len(text) - width + 3 :]}"


def _format_table(rows: Sequence[Sequence[str]], left_aligned: set[int] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """Columns as wide as they need be; names, which stand in the columns aligned left, give way."""
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
