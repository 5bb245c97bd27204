"""Measures two sides in turns, in one process or in a pair of processes, after comparing their outputs.

Machines are noisy, and their speed changes during a measurement. So the sides alternate in short samples, in the order
ours, reference, reference, ours. The median over the ratios (or differences) of neighbours is judged.
"""

from __future__ import annotations

import dataclasses
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from benchmarks.results import Result

COMPARED_CALLS = 3  # enough for a training step to show a wrong update


@dataclasses.dataclass(frozen=True)
class Settings:
    """How long to measure.

    Args:
        quick: whether a run only has to show that everything works.
        pairs: samples of each side.
        sample_seconds: how long one sample takes at least; fast calls are repeated within it.
        repeats: how often a costly measurement is repeated, such as a process or a compilation.
    """

    quick: bool = False
    pairs: int = 60
    sample_seconds: float = 0.01
    repeats: int = 7


QUICK = Settings(quick=True, pairs=4, sample_seconds=0.001, repeats=1)


class OutputsDiffer(Exception):
    """The two sides of a benchmark compute different things, so comparing their time means nothing."""


class Side(Protocol):
    """One of two things that are compared."""

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        """Results of the next calls; both sides are asked for it before they are timed."""

    def seconds(self, calls: int) -> float:
        """Returns how long that many calls take."""


class Call:
    """A function of this process as a side.

    Args:
        function: a function without arguments; returns a structure of arrays or tensors when all its work is done.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        return [_arrays(self._function()) for _ in range(calls)]

    def seconds(self, calls: int) -> float:
        function = self._function
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return time.perf_counter() - start


def compare(
    name: str,
    ours: Side,
    reference: Side,
    settings: Settings,
    *,
    ratio: float | None = None,
    extra_us: float | None = None,
    tolerance: float = 1e-4,
) -> Result:
    """Measures two sides against each other.

    Args:
        name: the name of the result.
        ours: the program on the simulated IPUs.
        reference: the same without them.
        settings: how long to measure.
        ratio: the highest allowed ratio of our time to the reference's.
        extra_us: instead of a ratio, the highest allowed microseconds that our call needs in addition.
        tolerance: relative, and absolute, by which outputs may differ.

    Raises:
        OutputsDiffer: the sides return different values.
    """
    _check(name, ours.outputs(COMPARED_CALLS), reference.outputs(COMPARED_CALLS), tolerance)
    calls = _calls_for(settings.sample_seconds, ours, reference)
    times: list[tuple[float, float]] = []
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for index in range(settings.pairs):
            if index % 2:
                second = reference.seconds(calls)
                times.append((ours.seconds(calls) / calls, second / calls))
            else:
                first = ours.seconds(calls)
                times.append((first / calls, reference.seconds(calls) / calls))
    finally:
        if enabled:
            gc.enable()
    return judge(name, times, ratio=ratio, extra_us=extra_us)


def judge(
    name: str, times: Sequence[tuple[float, float]], *, ratio: float | None = None, extra_us: float | None = None
) -> Result:
    """Returns the result of times measured in turns.

    Args:
        name: the name of the result.
        times: seconds a call of ours and of the reference, in pairs of neighbours.
        ratio: the highest allowed ratio of our time to the reference's.
        extra_us: instead of a ratio, the highest allowed microseconds that our call needs in addition.
    """
    ours, reference = [pair[0] for pair in times], [pair[1] for pair in times]
    if extra_us is None:
        figures = [a / b for a, b in times]
        best, unit, target = min(ours) / min(reference), "x", ratio
    else:
        figures = [(a - b) * 1e6 for a, b in times]
        best, unit, target = (min(ours) - min(reference)) * 1e6, "us", extra_us
    low, middle, high = quartiles(figures)
    return Result(
        name,
        middle,
        low,
        high,
        unit,
        target,
        ours_us=statistics.median(ours) * 1e6,
        reference_us=statistics.median(reference) * 1e6,
        best=best,
        samples=len(times),
    )


def quartiles(figures: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    if len(figures) == 1:
        return figures[0], figures[0], figures[0]
    low, middle, high = statistics.quantiles(figures, n=4, method="inclusive")
    return low, middle, high


def _calls_for(seconds: float, *sides: Side) -> int:
    """Returns how many calls the faster side needs to fill a sample."""
    calls = 1
    while True:
        fastest = min(side.seconds(calls) for side in sides)
        if fastest >= seconds or calls >= 1 << 16:
            return calls
        calls = max(calls + 1, min(calls * 8, round(calls * 1.2 * seconds / max(fastest, 1e-9))))


def _check(name: str, ours: Any, reference: Any, tolerance: float) -> None:
    for index, (mine, theirs) in enumerate(zip(ours, reference)):
        if len(mine) != len(theirs):
            raise OutputsDiffer(f"{name}: call {index} gives {len(mine)} outputs, the reference gives {len(theirs)}.")
        for output, (value, expected) in enumerate(zip(mine, theirs)):
            if value.shape != expected.shape or not np.allclose(value, expected, rtol=tolerance, atol=tolerance):
                raise OutputsDiffer(
                    f"{name}: output {output} of call {index} is\n{value}\nwhere the reference has\n{expected}"
                )


def _arrays(structure: Any) -> list[np.ndarray]:
    if structure is None:
        return []
    if isinstance(structure, (list, tuple)):
        return [array for value in structure for array in _arrays(value)]
    return [np.asarray(structure)]
