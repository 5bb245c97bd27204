"""Normalizes the return value of a user's function to a list."""

from __future__ import annotations

from typing import Any


def to_list(returned: Any) -> list[Any]:
    """Returns the values as a list.

    Example:
        >>> to_list(None), to_list(3), to_list((1, 2))
        ([], [3], [1, 2])
    """
    if returned is None:
        return []
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]
