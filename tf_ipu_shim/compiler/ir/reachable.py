"""What can be reached from some names: callers of functions, what functions call, what a variable is used by."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def reachable(start: Iterable[str], edges: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """These names and all that edges lead to from them, each once, in the order in which they are found.

    Args:
        start: names to begin with.
        edges: from a name to those that it leads to.

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
