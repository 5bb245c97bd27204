"""Formats lists of integers with ranges: 0, 1, 2 and 5 as `0-2, 5`."""

from __future__ import annotations

from collections.abc import Iterable


def format_ranges(numbers: Iterable[int], between: str = "-") -> str:
    """Returns numbers in order, with runs of neighbours joined.

    Example:
        >>> format_ranges([5, 0, 1, 2])
        '0-2, 5'
        >>> format_ranges([0, 1, 3], " to ")
        '0 to 1, 3'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}{between}{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
