"""Validates serialization factors: into how many sequential parts an op is split."""

from __future__ import annotations

import operator
from typing import Any


def check_factor(factor: Any) -> int:
    """Returns the number of parts.

    Example:
        >>> check_factor(4)
        4
    """
    try:
        parts = operator.index(factor)
    except TypeError:
        raise TypeError(
            f"serialization_factor has to be a whole number, but was {factor!r}. Pass a whole number."
        ) from None
    if parts < 1:
        raise ValueError(f"serialization_factor has to be at least 1, but was {factor}. Pass at least 1.")
    return parts
