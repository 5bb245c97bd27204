"""Stores the memory use of a script's programs as a baseline file and reports growth against it.

The file is JSON, sorted and indented, so that a change of it can be read in a review. Figures are the modelled ones, in
bytes: the same on every machine.
"""

from __future__ import annotations

import json
import os
import pathlib
import types
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.machine.memory import IpuPlan, MemoryPlan
from tf_ipu_shim.machine.memory.byte_text import format_bytes, format_pair
from tf_ipu_shim.profiling.allocation_names import stable_name, without_counts

VERSION = 1
_SHOWN = 8
_OTHERS = "all smaller ones"


class Figures(NamedTuple):
    """The memory of one program on one IPU.

    Args:
        peak_bytes: the bytes at the largest step, always-live memory included.
        owners: bytes at that step by owner, such as `weight dense/kernel:0`; their sum is `peak_bytes`.
    """

    chip: str
    always_live_bytes: int
    peak_bytes: int
    owners: dict[str, int]


Baseline = dict[str, Figures]
"""Figures by place: device, program and IPU."""


def make_baseline(
    programs: Mapping[str, Iterable[MemoryPlan]], counts: Mapping[str, int] = types.MappingProxyType({})
) -> Baseline:
    """Returns the figures of all programs of a process.

    Args:
        counts: how many layers had each automatic name of Keras before these programs.
    """
    baseline: Baseline = {}
    for device, plans in programs.items():
        seen: dict[str, int] = {}
        for plan in plans:
            seen[plan.program] = seen.get(plan.program, 0) + 1
            name = plan.program if seen[plan.program] == 1 else f"{plan.program} #{seen[plan.program]}"
            for ipu in plan.ipus:
                baseline[f"{device} {name}, IPU {ipu.ipu}"] = _chip_figures(plan.chip, ipu, counts)
    return baseline


def _chip_figures(chip: str, ipu: IpuPlan, counts: Mapping[str, int]) -> Figures:
    owners: dict[str, int] = {}
    for owner in ipu.owners:
        key = f"{owner.kind} {without_counts(stable_name(owner.kind, owner.name), counts)}"
        owners[key] = owners.get(key, 0) + owner.bytes
    rest = ipu.peak_bytes - sum(owners.values())
    if rest:
        owners[_OTHERS] = rest
    return Figures(chip, ipu.always_live_bytes, ipu.peak_bytes, owners)


def write_baseline(baseline: Baseline, path: str | os.PathLike[str]) -> None:
    """Writes a baseline file."""
    content = {"version": VERSION, "programs": {program: figures._asdict() for program, figures in baseline.items()}}
    pathlib.Path(path).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Reads a baseline file."""
    try:
        content: Any = json.loads(pathlib.Path(path).read_text())
        if content["version"] != VERSION:
            raise ValueError(f"it has version {content['version']}, and {VERSION} is read here")
        return {
            str(program): Figures(
                str(entry["chip"]),
                int(entry["always_live_bytes"]),
                int(entry["peak_bytes"]),
                _sum_by_stable_name(entry["owners"]),
            )
            for program, entry in content["programs"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{os.fspath(path)} is not a memory baseline: {error}. Write it again.") from error


def _sum_by_stable_name(owners: Mapping[str, Any]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for owner, size in owners.items():
        kind, _, name = owner.partition(" ")
        key = f"{kind} {stable_name(kind, name)}"
        sums[key] = sums.get(key, 0) + int(size)
    return sums


def find_growth(before: Baseline, now: Baseline, percent: float = 0.0) -> list[str]:
    """Describes programs that need more memory than the baseline.

    Example:
        >>> one = Figures("GC200", 0, 8, {"argument x": 8})
        >>> find_growth({"a": one}, {"a": one._replace(peak_bytes=12, owners={"argument x": 12})})[1].split()
        ['+4', 'B', 'argument', 'x', '(8', 'B', '->', '12', 'B)']
    """
    lines = []
    for program, figures in now.items():
        old = before.get(program)
        if old is None:
            lines.append(f"{program}: {format_bytes(figures.peak_bytes)}, and is not in the baseline")
        elif old.chip != figures.chip:
            lines.append(f"{program}: on {figures.chip}, and the baseline is of {old.chip}")
        elif figures.peak_bytes > old.peak_bytes * (1 + percent / 100):
            more = figures.peak_bytes - old.peak_bytes
            part = f", {100 * more / old.peak_bytes:+.1f} %" if old.peak_bytes else ""
            peaks = format_pair(old.peak_bytes, figures.peak_bytes)
            lines.append(f"{program}: peak {peaks} ({format_bytes(more, True)}{part})")
            lines += _owners(old.owners, figures.owners)
    return lines


def _owners(before: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    changes = {name: size - before.get(name, 0) for name, size in now.items() if size > before.get(name, 0)}
    largest = sorted(changes, key=lambda name: (-changes[name], name))
    lines = [
        f"  {format_bytes(changes[name], True):>11}  {name} ({format_pair(before.get(name, 0), now[name])})"
        for name in largest[:_SHOWN]
    ]
    remaining = sum(changes[name] for name in largest[_SHOWN:])
    return [*lines, f"  {format_bytes(remaining, True):>11}  {len(largest) - _SHOWN} more"] if remaining else lines
