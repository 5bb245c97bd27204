"""Fits an error bar to the ratios of each regime: the factor that holds for nine of ten rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

REGIMES = ("compute", "small", "host", "launch", "links", "memory short", "verdict", "memory", "code")
"""Limits of programs: matmuls and element-wise ops, fixed costs of many small ops, the host link, launches, links."""
COVERAGE = 0.9
"""The part of the rows that a bar holds for."""


class Bar(NamedTuple):
    """The residuals of a regime.

    Args:
        rows: how many ratios there are.
        mean: their geometric mean.
        factor: a ratio is between 1 / factor and factor in nine of ten rows.
    """

    rows: int
    mean: float
    factor: float


def bar_of(ratios: Iterable[float]) -> Bar:
    """Returns the bar of some ratios.

    Example:
        >>> bar_of([0.5, 1.0, 1.0])
        Bar(rows=3, mean=0.7937005259840998, factor=2.0)
    """
    logs = [math.log(ratio) for ratio in ratios]
    sizes = sorted(map(abs, logs))
    return Bar(len(logs), math.exp(sum(logs) / len(logs)), math.exp(sizes[math.ceil(COVERAGE * len(logs)) - 1]))


def bars_by(ratios: Iterable[tuple[str, float]]) -> Mapping[str, Bar]:
    """Returns the bar of each key, in order of appearance."""
    groups: dict[str, list[float]] = {}
    for key, ratio in ratios:
        groups.setdefault(key, []).append(ratio)
    return {key: bar_of(group) for key, group in groups.items()}


def left_out(ratios: Iterable[tuple[str, float]]) -> tuple[int, int]:
    """Returns how many rows are inside the bar of all other publications, and how many could be tried.

    Args:
        ratios: publication and ratio of each row. With one publication there is no bar to try.

    Example:
        >>> left_out([("a", 1.0), ("a", 1.2), ("b", 1.1), ("b", 1.5)])
        (3, 4)
    """
    pairs = list(ratios)
    inside = tried = 0
    for publication in dict.fromkeys(name for name, _ in pairs):
        others = [ratio for name, ratio in pairs if name != publication]
        own = [ratio for name, ratio in pairs if name == publication]
        if others:
            factor = bar_of(others).factor
            inside += sum(1 / factor <= ratio <= factor for ratio in own)
            tried += len(own)
    return inside, tried
