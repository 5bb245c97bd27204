"""Describes a loop's trip count by a constant and by limits that are known when the loop begins."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A loop condition `counter < limit`, with a counter that increases by one.

    Args:
        limit: the index of the loop variable that it is compared with, which does not change; -1 for a constant.
        type: the `DataType` of both.
    """

    counter: int
    limit: int
    constant: int
    type: int


class Trips(NamedTuple):
    """A loop's trip count: the minimum of a constant and of limits known when the loop begins.

    Args:
        most: a number, if one is known; -1 for none.
        limits: the sources of the other numbers when the loop begins.
    """

    most: int
    limits: tuple[Limit, ...]
