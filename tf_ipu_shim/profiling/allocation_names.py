"""Normalizes the names of memory allocations so that they match between runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLES = frozenset({"weight", "optimizer_state", "accumulator"})
_COUNT = re.compile(r"/\d+$")
_AUTOMATIC = re.compile(r"(?<![^/])([^/:]+?)_(\d+)(?=[/:]|$)")


def stable_name(kind: str, name: str) -> str:
    """A variable's name without the number that TensorFlow 2 appends, which counts all variables of a process.

    Otherwise, one more variable before it would change its name.

    Example:
        >>> stable_name("weight", "dense/kernel/3"), stable_name("temporary", "while/3")
        ('dense/kernel', 'while/3')
    """
    return _COUNT.sub("", name) if kind in _VARIABLES else name


def without_counts(name: str, counts: Mapping[str, int]) -> str:
    """Returns a name with Keras' automatic layer names numbered as in a new process.

    Args:
        counts: how many layers had each automatic name before.

    Example:
        >>> without_counts("dense_2/kernel", {"dense": 2}), without_counts("dense_3/kernel", {"dense": 2})
        ('dense/kernel', 'dense_1/kernel')
    """

    def restart(match: re.Match[str]) -> str:
        new_index = int(match[2]) - counts.get(match[1], 0)
        if match[1] not in counts or new_index < 0:
            return match[0]
        return f"{match[1]}_{new_index}" if new_index else match[1]

    return _AUTOMATIC.sub(restart, name) if counts else name
