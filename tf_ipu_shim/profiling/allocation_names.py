"""Normalizes the names of memory allocations so that they match between runs."""

from __future__ import annotations

import re

_VARIABLES = frozenset({"weight", "optimizer_state", "accumulator"})
_COUNT = re.compile(r"/\d+$")


def stable_name(kind: str, name: str) -> str:
    """A variable's name without the number that TensorFlow 2 puts behind it, which counts all variables of a process.

    With one more variable before it, the same one would else have another name.

    Example:
        >>> stable_name("weight", "dense/kernel/3"), stable_name("temporary", "while/3")
        ('dense/kernel', 'while/3')
    """
    return _COUNT.sub("", name) if kind in _VARIABLES else name
