"""Defines the markers `ipu_system`, `ipu_chip` and `ipu_sdk`, and suggests them for misspelt ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from tf_ipu_shim import spelling
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.chips import CHIPS

MARKERS = (
    "ipu_system(name): the test runs on this simulated machine, such as pod4",
    "ipu_chip(name): the test's machine has these chips: gc2, gc200, bow or c600",
    "ipu_sdk(*versions): the test is for these SDKs, and skipped where TF_IPU_SHIM_SDK asks for another",
)
NAMES = tuple(marker.partition("(")[0] for marker in MARKERS)
_PREFIX = "ipu_"
_GRAPHCORES = frozenset({"ipu_version"})
"""Markers that the `pytest.ini` of Graphcore's examples registers; other runs of them may not read it."""
_STRICT = re.compile(r"'(\w+)' not found in `markers` configuration option")

__tracebackhide__ = True


def refuse_misspelt(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Ends the run at an unknown marker whose name resembles one of ours."""
    registered = {re.split(r"[(:]", line)[0].strip() for line in config.getini("markers")} | _GRAPHCORES
    for item in items:
        for marker in item.iter_markers():
            if marker.name not in registered and (marker.name.startswith(_PREFIX) or suggest(marker.name)):
                raise pytest.UsageError(
                    f"{item.nodeid}: the marker is {marker.name!r}; expected one of {', '.join(NAMES)}."
                    f"{suggest(marker.name)} Use one of these."
                )


def suggest(name: str) -> str:
    """Returns the marker of ours that a name is close to, as a sentence; empty if none is.

    Example:
        >>> suggest("ipu_sytem"), suggest("slow")
        (" Did you mean 'ipu_system'?", '')
    """
    return spelling.did_you_mean(name, NAMES, cutoff=0.6 if name.startswith(_PREFIX) else 0.85)


def suggest_for_strict(report: pytest.CollectReport) -> None:
    """Adds the suggestion if `--strict-markers` has refused the name already."""
    match = _STRICT.search(str(report.longrepr)) if report.failed else None
    if match and suggest(match[1]):
        report.sections.append((f"marker {match[1]!r}", suggest(match[1]).strip()))


def selected_system(node: Any) -> str | None:
    """Returns the system that the markers of a test name, as `TF_IPU_SHIM_SYSTEM` does; None without such markers."""
    system, chip = _value(node, "ipu_system", systems.SYSTEMS), _value(node, "ipu_chip", CHIPS)
    if system is None and chip is None:
        return None
    name = system or systems.current().name.partition(":")[0]
    return systems.named(f"{name}:chip={chip}" if chip else name).name


def _value(node: Any, marker: str, accepted: Iterable[str]) -> str | None:
    mark = node.get_closest_marker(marker)
    if mark is None:
        return None
    names = sorted(accepted)
    value = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if isinstance(value, str) and value.strip().lower() in names:
        return value.strip().lower()
    received = ", ".join(map(repr, mark.args))
    pytest.fail(
        f"@pytest.mark.{marker}({received}) of {node.nodeid}: expected one of {', '.join(names)}."
        + systems.did_you_mean(str(value), names),
        pytrace=False,
    )
