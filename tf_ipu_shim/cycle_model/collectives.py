"""Models collectives of replicas over IPU-Links: their time, their number of exchanges, and which are merged.

On a ladder replicas are a ring, or one for each IPU of theirs. It follows PopLibs' choice by the number of replicas and
bytes. The data goes round in one direction, half in each, or all in both until they meet in the middle. Several ladders
first compute their own sums, each replica a part of them. They then add these parts over the gateways, as in GCL's
collectives of three phases.

Source: docs/reference/facts.md, section "Collectives".
"""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.sizes import CollectiveSizes
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.memory.description import Step

_BOTH_WAYS_FROM = {"scatter": (1_245_184, 4_980_736, 39_845_888), "gather": (622_592, 2_490_368, 19_922_944)}
"""Bytes of a replica from which half of the data goes each way all round, of up to 4, up to 8 and more replicas."""
_FEW_REPLICAS, _SOME_REPLICAS, _MANY_REPLICAS = 4, 8, 16


class CollectiveCost(NamedTuple):
    """Time and steps of a collective.

    Args:
        seconds: the seconds on every IPU at the same time, without syncs.
        steps: exchanges that must wait for each other, as each forwards the data of the last one.
    """

    seconds: float
    steps: int


def collective_cost(size: int, replicas: int, num_ipus: int, taking_part: int = 0, rounds: int = 2) -> CollectiveCost:
    """Returns the cost of an all-reduce or all-gather over replicas.

    Example:
        >>> collective_cost(1 << 20, 64, 64).seconds < collective_cost(1 << 20, 128, 128).seconds
        True
        >>> [collective_cost(64 << 20, replicas, replicas).steps for replicas in (2, 16, 64, 256)]
        [2, 23, 64, 70]
    """
    if replicas < 2 or not size:
        return CollectiveCost(0.0, 0)
    ipus = taking_part or num_ipus
    ladders = -(-ipus // links.IPUS_OF_LADDER)
    on_ladder = max(1, replicas // ladders)
    each = max(1, ipus // replicas)
    seconds, steps = 0.0, 0
    if on_ladder > 1:
        # The rings of a replica's IPUs go along the two sides of the ladder, over the same links.
        shared = max(1, each // 2) / links.link_bytes_per_second(num_ipus)
        for kind in ("gather", "scatter")[:rounds]:
            passed, count = _round(kind, size, on_ladder, each, ipus >= links.IPUS_OF_LADDER)
            seconds += passed * shared
            steps += count
    if ladders > 1:
        apart = replicas // on_ladder
        sent = rounds * size * (apart - 1) // (apart * on_ladder)
        seconds += sent * links.IPUS_OF_GATEWAY / links.GATEWAY_BYTES_PER_SECOND
        steps += rounds * (apart - 1)
    return CollectiveCost(seconds, steps)


def _round(kind: str, size: int, replicas: int, ipus_of_each: int, torus: bool) -> tuple[float, int]:
    """Returns the bytes per link of a scatter or gather, and its steps."""
    all_round = size * (replicas - 1) / replicas
    if replicas == 2 or (ipus_of_each > 1 and not torus):
        return all_round, replicas - 1
    limits = _BOTH_WAYS_FROM[kind]
    limit = limits[(replicas > _FEW_REPLICAS) + (replicas > _SOME_REPLICAS)]
    of_replica = size if kind == "scatter" else size // replicas
    if ipus_of_each == 1 and of_replica >= limit and replicas <= _MANY_REPLICAS:
        return all_round / 2, replicas - 1
    half_way = replicas // 2
    return size * half_way / replicas, half_way


class CollectiveBatcher:
    """Tracks which collectives of a block merge with the previous one.

    Collectives that do not need each other's results are merged, up to the bytes in their `Computation`.

    Example:
        >>> sums, work = CollectiveBatcher(), Computation("collective", "sum", CollectiveSizes(400, 0, 1000, 2))
        >>> sums.merges(Step("a", (0,), (1,), work=work)), sums.merges(Step("b", (2,), (3,), work=work))
        (False, True)
        >>> sums.merges(Step("c", (3,), (4,), work=work))
        False
    """

    def __init__(self) -> None:
        self._like: CollectiveSizes | None = None
        self._left = 0
        self._needed: set[int] = set()  # values that there are only when what waits has been sent

    def merges(self, step: Step) -> bool:
        """Returns whether a step is a collective that merges with the previous one."""
        depends = not self._needed.isdisjoint(step.inputs)
        sizes = step.work.sizes if isinstance(step.work, Computation) else None
        if not isinstance(sizes, CollectiveSizes):
            if step.inside:  # may have collectives
                self._left = 0
            if depends:
                self._needed.update(step.outputs)
            return False
        like = sizes._replace(bytes=0)
        merges = not depends and like == self._like and sizes.bytes <= self._left
        if not merges:
            self._needed.clear()
            self._like, self._left = like, sizes.merged_bytes
        self._left -= sizes.bytes
        self._needed.update(step.outputs)
        return merges
