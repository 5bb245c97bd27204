"""Divides the plugin's sources into translation units to compile in parallel, by the machine's cores and memory."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import math
import os
import pathlib
from collections.abc import Iterable, Sequence

from tf_ipu_shim.plugin.include_graph import IncludeGraph

FEWEST, MOST = 2, 8
"""Each unit reads TensorFlow's headers: more units than cores only cost time, and beyond eight they save little."""


@dataclasses.dataclass
class Unit:
    """Sources that are compiled together, the headers that they include, and the seconds that a core needs for them."""

    sources: list[pathlib.Path]
    headers: set[pathlib.Path]
    seconds: float

    def add(self, source: pathlib.Path, headers: Iterable[pathlib.Path], seconds: float) -> None:
        """Adds a source, the headers that it includes, and the seconds for the new ones."""
        self.sources.append(source)
        self.headers.update(headers)
        self.seconds += seconds


_UNIT_BYTES = 3 << 29  # of memory that the compiler needs for a unit
UNIT_BYTES_WITHOUT_COLLECTIONS = 5 << 29
"""The memory that the compiler needs for a unit with its garbage collection switched off."""
# Of one core of a server's processor at 2 to 3 GHz.
_SECONDS_A_HEADER_BYTE, _SECONDS_A_BYTE, _LINK_SECONDS = 0.7e-6, 1.2e-4, 3.0
_QUOTA = pathlib.Path("/sys/fs/cgroup/cpu.max")
_MEMORY = pathlib.Path("/proc/meminfo")


def unit_count() -> int:
    """Returns how many translation units this machine compiles side by side: one a core, while memory lasts.

    Example:
        >>> FEWEST <= unit_count() <= MOST
        True
    """
    return max(FEWEST, min(cores(), _available_memory() // _UNIT_BYTES, MOST))


def has_memory(units: int) -> bool:
    """Whether this many units can be compiled in parallel without the compiler's garbage collections.

    Example:
        >>> has_memory(10**6)
        False
    """
    return units * UNIT_BYTES_WITHOUT_COLLECTIONS <= _available_memory()


def cores() -> int:
    """Returns the cores that this process may use: by its affinity, and by the quota of its container."""
    core_count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        core_count = min(core_count, math.ceil(int(quota) / int(period)))  # int refuses "max"
    return max(1, core_count)


def expected_seconds(units: Sequence[Unit]) -> float:
    """Returns the expected seconds of the units on this machine under its present load.

    Example:
        >>> expected_seconds(divide([], 2)) > 1
        True
    """
    share = min(1.0, cores() / (len(units) + os.getloadavg()[0]))
    return _LINK_SECONDS + max((unit.seconds for unit in units), default=0.0) / share


def _available_memory() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return MOST * _UNIT_BYTES


def divide(sources: Sequence[pathlib.Path], count: int, folders: Sequence[pathlib.Path] = ()) -> list[Unit]:
    """Returns the sources in `count` parts with about the same compile time; fewer if there are fewer sources.

    A unit reads a header once. So sources that share a slow header, found in `folders`, are in one unit.
    """
    graph = IncludeGraph(folders)
    headers_of = {source: graph.headers_of(source) for source in sources}
    uses = collections.Counter(itertools.chain.from_iterable(headers_of.values()))
    common = frozenset(header for header, users in uses.items() if 2 * users > len(sources))

    def seconds_of(headers: Iterable[pathlib.Path]) -> float:
        return sum(map(graph.size_of, headers)) * _SECONDS_A_HEADER_BYTE

    def seconds_alone(source: pathlib.Path) -> tuple[float, pathlib.Path]:
        return seconds_of(headers_of[source] - common) + graph.size_of(source) * _SECONDS_A_BYTE, source

    common_seconds = seconds_of(common)
    units = [Unit([], set(common), common_seconds) for _ in range(min(count, len(sources)))]
    for source in sorted(sources, key=seconds_alone, reverse=True):
        own_seconds = graph.size_of(source) * _SECONDS_A_BYTE
        more_seconds = [seconds_of(headers_of[source] - unit.headers) for unit in units]
        # Headers count twice: the unit takes longer, and so do all units together.
        best = min(range(len(units)), key=lambda index: units[index].seconds + 2 * more_seconds[index])
        units[best].add(source, headers_of[source], own_seconds + more_seconds[best])
    return units
