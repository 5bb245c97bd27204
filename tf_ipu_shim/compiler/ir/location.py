"""Locations of ops: on a shard, on the host, or over several shards.

Each location is one object, so `is` compares them. No number stands for one: that of an IPU is its `ipu`.
"""

from __future__ import annotations

import functools


class Location:
    """A place where ops run.

    Attributes:
        ipu: the one IPU (shard) it is on; None for all others.
        is_in_program: whether its ops are part of that IPU's XLA programs.

    Example:
        >>> on_ipu(2), on_ipu(2).ipu, on_ipu(2) is on_ipu(2), HOST.ipu
        (IPU 2, 2, True, None)
    """

    __slots__ = ("_text", "ipu", "is_in_program")

    def __init__(self, text: str, ipu: int | None = None, is_in_program: bool = False) -> None:
        self._text = text
        self.ipu = ipu
        self.is_in_program = is_in_program

    def __repr__(self) -> str:
        return self._text


HOST = Location("host")
SEVERAL = Location("several")
"""A loop, branch or call whose functions run on more than one IPU, or on an IPU and the host."""
ALL_IPUS = Location("all IPUs")
"""As a mark: the op is on every IPU, so it runs wherever those around it do."""
ALONE = Location("alone")
"""As what a function holds: an op that is in no XLA program, on whichever IPU."""


@functools.cache
def on_ipu(ipu: int) -> Location:
    """Returns the location within a shard's XLA programs."""
    return Location(f"IPU {ipu}", ipu, True)


@functools.cache
def uncompiled_on(ipu: int) -> Location:
    """Returns the location on a shard outside XLA programs, for ops that TensorFlow's own kernel runs."""
    return Location(f"alone on IPU {ipu}", ipu)
