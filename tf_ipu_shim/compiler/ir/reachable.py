"""Finds everything reachable from start nodes along edges (callers, called functions, users of variables)."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def reachable(start: Iterable[str], edges: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Returns the start items and all that edges lead to, each once, in order of discovery.

    Example:
        >>> list(reachable(["a"], {"a": ["b", "c"], "b": ["a"], "c": []}.__getitem__))
        ['a', 'b', 'c']
    """
    found = dict.fromkeys(start)
    waiting = list(found)
    while waiting:
        for other in edges(waiting.pop()):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return found
