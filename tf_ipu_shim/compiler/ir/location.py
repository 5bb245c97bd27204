"""Defines the locations of ops: a shard, the host, or several shards.

Each location is one object, so `is` compares them. It is not a number: a shard's number is its `shard`.
"""

from __future__ import annotations

import functools

from tf_ipu_shim.machine.ids import Shard


class Location:
    """A place where ops run.

    Attributes:
        shard: the one shard it is on; None for all others.
        is_in_program: whether its ops are part of that shard's XLA programs.

    Example:
        >>> one = on_shard(Shard(2))
        >>> one, one.shard, one is on_shard(Shard(2)), HOST.shard
        (IPU 2, 2, True, None)
    """

    __slots__ = ("_name", "is_in_program", "shard")

    def __init__(self, name: str, shard: Shard | None = None, is_in_program: bool = False) -> None:
        self._name = name
        self.shard = shard
        self.is_in_program = is_in_program

    def __repr__(self) -> str:
        return self._name


HOST = Location("host")
MULTI_SHARD = Location("several")
"""A loop, branch or call whose functions run on more than one shard, or on a shard and the host."""
ALL_IPUS = Location("all IPUs")
"""As an annotation: the op is on every IPU, so it runs where its neighbours do."""
UNCLUSTERED = Location("alone")
"""In a set of annotations: an op outside XLA programs, on any shard."""


@functools.cache
def on_shard(shard: Shard) -> Location:
    """Returns the location within a shard's XLA programs."""
    return Location(f"IPU {shard}", shard, True)


@functools.cache
def uncompiled_on(shard: Shard) -> Location:
    """Returns the location on a shard outside XLA programs, for ops that TensorFlow's own kernel runs."""
    return Location(f"alone on IPU {shard}", shard)
