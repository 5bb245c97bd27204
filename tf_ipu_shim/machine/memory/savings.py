"""Computes the bytes that a recommended change saves, and ranks changes: those that make the program fit first."""

from __future__ import annotations

from tf_ipu_shim.machine.memory.plan import IpuPlan, MemoryPlan, Saving

_LEAST_SHARE = 0.01
"""The part of the best action's savings below which an action is left out, unless the program fits with it."""


def saving_between(plan: MemoryPlan, full: IpuPlan, changed: MemoryPlan, action: str) -> Saving:
    """Returns the bytes that a change from one plan to another saves."""
    then = next((ipu.peak_bytes for ipu in changed.ipus if ipu.ipu == full.ipu), 0)
    return Saving(action, full.peak_bytes - then, changed.fits)


def best(savings: list[Saving], count: int = 3) -> tuple[Saving, ...]:
    """Returns the actions that save most; actions that make the program fit are first.

    Example:
        >>> [one.action for one in best([Saving("a", 8, False), Saving("b", 4, True), Saving("c", 0, False)])]
        ['b', 'a']
    """
    least = _LEAST_SHARE * max((saving.bytes for saving in savings), default=0)
    useful = [saving for saving in savings if saving.bytes > (0 if saving.fits else least)]
    return tuple(sorted(useful, key=lambda candidate: (not candidate.fits, -candidate.bytes))[:count])
