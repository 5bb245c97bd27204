"""Divides the plugin's sources into translation units that are compiled side by side, one a core."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
from collections.abc import Sequence

FEWEST, MOST = 2, 8
"""Each unit reads TensorFlow's headers: more units than cores only cost time, and beyond eight they save little."""
_UNIT_BYTES = 3 << 29  # of memory that the compiler needs for a unit
# Of one core of a server's processor at 2 to 3 GHz.
_HEADER_SECONDS, _SECONDS_A_BYTE, _LINK_SECONDS = 14.5, 1.2e-4, 3.0
_QUOTA = pathlib.Path("/sys/fs/cgroup/cpu.max")
_MEMORY = pathlib.Path("/proc/meminfo")


def unit_count() -> int:
    """Returns how many translation units this machine compiles side by side: one a core, while memory lasts.

    Example:
        >>> FEWEST <= unit_count() <= MOST
        True
    """
    return max(FEWEST, min(cores(), _available_memory() // _UNIT_BYTES, MOST))


def cores() -> int:
    """Returns the cores that this process may use: by its affinity, and by the quota of its container."""
    core_count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        core_count = min(core_count, math.ceil(int(quota) / int(period)))  # int refuses "max"
    return max(1, core_count)


def expected_seconds(units: Sequence[Sequence[pathlib.Path]]) -> float:
    """Returns the expected seconds of the units on this machine under its present load.

    Example:
        >>> expected_seconds([[]]) > 1
        True
    """
    largest = max(sum(source.stat().st_size for source in unit) for unit in units)
    share = min(1.0, cores() / (len(units) + os.getloadavg()[0]))
    return _LINK_SECONDS + (_HEADER_SECONDS + largest * _SECONDS_A_BYTE) / share


def _available_memory() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return MOST * _UNIT_BYTES


def divide(sources: Sequence[pathlib.Path], count: int) -> list[list[pathlib.Path]]:
    """Returns the sources in `count` parts of about the same size; fewer if there are fewer sources."""
    count = min(count, len(sources))
    parts: list[list[pathlib.Path]] = [[] for _ in range(count)]
    sizes = [0] * count
    for size, source in sorted(((source.stat().st_size, source) for source in sources), reverse=True):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(source)
        sizes[smallest] += size
    return [sorted(part) for part in parts]
