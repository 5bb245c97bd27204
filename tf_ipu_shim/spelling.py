"""Finds the name that was probably meant by a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6, key: Callable[[str], str] = str) -> str | None:
    """Returns the known name that is spelt most like another one; None if none is near.

    Args:
        name: what was written.
        known: the names to choose from.
        cutoff: the least likeness, from 0 for any name to 1 for the same one.
        key: the form of a known name that is compared with what was written.

    Example:
        >>> nearest("polls", ["Pools", "loops"], key=str.lower)
        'Pools'
    """
    known_by_key = {key(other): other for other in known}
    close = difflib.get_close_matches(name, known_by_key, 1, cutoff)
    return known_by_key[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str], form: str = "'{}'", cutoff: float = 0.6) -> str:
    """Returns the nearest name as a sentence that follows another one; empty if none is near.

    Example:
        >>> did_you_mean("memry", ["system", "memory"], "--{}")
        ' Did you mean --memory?'
    """
    near = nearest(name, known, cutoff)
    return f" Did you mean {form.format(near)}?" if near else ""
