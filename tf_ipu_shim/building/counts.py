"""Arguments that count: integers of any type, and nothing else."""

from __future__ import annotations

import numbers
from typing import Any


def check_integer(name: str, value: Any) -> int:
    """Refuses numbers that count nothing.

    Args:
        name: of the argument.
        value: of any type.

    Returns:
        Python's integer, where scripts give NumPy's.

    Raises:
        TypeError: it is no integer.

    Example:
        >>> check_integer("buffer_depth", np.int64(3))
        3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}.")
    return int(value)
