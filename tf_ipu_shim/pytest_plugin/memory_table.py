"""Formats the table of `--ipu-report`: the memory of each test's programs on its fullest IPU."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tf_ipu_shim.machine.memory.byte_text import format_bytes

PROPERTY = "ipu_memory"
TITLE = "IPU memory by test"
_HEADER = ("peak", "limit", "used", "always live", "IPU", "program", "test")


def fullest_ipu(devices: Iterable[Any]) -> str:
    """Returns the figures of the IPU that is fullest, as text that reports can carry between processes.

    Args:
        devices: the devices of a memory report.
    """
    planned = [(device, ipu) for device in devices for ipu in device.ipus if ipu.modelled is not None]
    if not planned:
        return ""
    device, ipu = max(planned, key=lambda pair: pair[1].modelled.used_percent)
    plan = ipu.modelled
    return json.dumps(
        {
            "peak": plan.used_bytes,
            "limit": plan.limit_bytes,
            "used": plan.used_percent,
            "always_live": plan.always_live_bytes + plan.code_bytes,
            "ipu": f"{ipu.ipu} of {device.name.removeprefix('/device:')}",
            "program": ipu.program,
        }
    )


def table(reports: Iterable[Any]) -> list[str]:
    """Returns the lines of the table, the test with the fullest IPU first; empty if no test ran a program."""
    sorted_rows = sorted(_rows(reports), key=lambda row: (-row[0], row[1]))
    rows = [_HEADER, *(cells for _, _, cells in sorted_rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [_line(row, widths) for row in rows] if sorted_rows else []


def _rows(reports: Iterable[Any]) -> Iterator[tuple[float, str, tuple[str, ...]]]:
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == PROPERTY:
                ipu = json.loads(value)
                sizes = (format_bytes(ipu["peak"]), format_bytes(ipu["limit"]), f"{ipu['used']:.1f} %")
                cells = (*sizes, format_bytes(ipu["always_live"]), ipu["ipu"], ipu["program"], report.nodeid)
                yield ipu["used"], report.nodeid, cells


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    number_columns, words = 4, len(row) - 1
    cells = [cell.rjust(width) for cell, width in zip(row[:number_columns], widths)]
    cells += [cell.ljust(width) for cell, width in zip(row[number_columns:words], widths[number_columns:])]
    return "  ".join([*cells, row[-1]])
