"""What an action would save on the IPU that is too full."""

from __future__ import annotations

import math

from tf_ipu_shim.machine.memory.plan import IpuPlan, MemoryPlan, Saving

_OF_A_BATCH = ("argument", "activation", "fifo", "stash")
_MOST_IPUS = 64
_LEAST_SHARE = 0.01
"""Of what the best action saves: less is not worth naming, unless the program fits with it."""


def beside(plan: MemoryPlan, full: IpuPlan, changed: MemoryPlan, action: str) -> Saving:
    """What the change from one plan to another saves.

    Args:
        plan: the program as it is.
        full: the IPU of it that is too full.
        changed: the program as it would be.
        action: what makes it so.
    """
    then = next((ipu.peak_bytes for ipu in changed.ipus if ipu.ipu == full.ipu), 0)
    return Saving(action, full.peak_bytes - then, changed.fits)


def of_figures(plan: MemoryPlan, full: IpuPlan, replicas: int, is_keras: bool = False) -> list[Saving]:
    """What follows from a plan's own figures: more IPUs, a smaller batch.

    More IPUs: were the model cut evenly over the next power of two at which that fits. What cannot be cut, the largest
    single owner, has to fit on one. A smaller batch counts what is fed and what is kept for the backward pass or for
    the next stage, and no temporaries, of which some grow with the batch and some do not.

    Args:
        plan: the program as it is.
        full: the IPU of it that is too full.
        replicas: of the program; each is on as many IPUs.
        is_keras: whether a Keras model has made it, which has stages and no shards.
    """
    found = []
    shards = max(1, len(plan.ipus) // max(1, replicas))
    total = sum(ipu.peak_bytes for ipu in plan.ipus[:shards])
    indivisible = max((owner.bytes for ipu in plan.ipus[:shards] for owner in ipu.owners), default=0)
    count = 1 << max(1, math.ceil(math.log2(max(1.0, total / full.limit_bytes))))
    while count <= shards:
        count *= 2
    each = max(indivisible, -(-total // count))
    if count <= _MOST_IPUS and each < full.peak_bytes:
        means = "pipeline stages" if is_keras else "ipu_shard or stages"
        action = f"{count} IPUs to a replica instead of {shards}, cut evenly (auto_select_ipus; {means})"
        found.append(Saving(action, full.peak_bytes - each, each <= full.limit_bytes))
    grows = {ipu.ipu: sum(ipu.categories[kind] for kind in _OF_A_BATCH) // 2 for ipu in plan.ipus}
    if grows[full.ipu]:
        fits = all(ipu.peak_bytes - grows[ipu.ipu] <= ipu.limit_bytes for ipu in plan.ipus)
        found.append(Saving("a batch half as large", grows[full.ipu], fits))
    return found


def best(savings: list[Saving], count: int = 3) -> tuple[Saving, ...]:
    """Those that save most; those with which the program fits come first.

    Example:
        >>> [one.action for one in best([Saving("a", 8, False), Saving("b", 4, True), Saving("c", 0, False)])]
        ['b', 'a']
    """
    least = _LEAST_SHARE * max((one.bytes for one in savings), default=0)
    useful = [one for one in savings if one.bytes > (0 if one.fits else least)]
    return tuple(sorted(useful, key=lambda one: (not one.fits, -one.bytes))[:count])
