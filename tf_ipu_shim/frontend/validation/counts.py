"""Checks that arguments are whole numbers, of Python's or NumPy's types."""

from __future__ import annotations

import numbers
from typing import Any


def check_integer(name: str, value: Any) -> int:
    """Refuses values that are not counts.

    Example:
        >>> check_integer("buffer_depth", np.int64(3))
        3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}. Pass an integer.")
    return int(value)


def check_whole(name: str, value: Any) -> int:
    """Returns a number of steps, which scripts make of rounded quotients: `np.ceil(samples / batch) * accumulation`.

    Example:
        >>> check_whole("steps", np.ceil(7 / 4) * 4)
        8
    """
    try:
        integer = int(value)
    except (ValueError, OverflowError):  # of NaN, and of infinity
        integer = None
    if integer is None or integer != value:
        raise ValueError(f"{name} is {value!r}; expected a whole number. Pass one, or leave it out.")
    return integer
