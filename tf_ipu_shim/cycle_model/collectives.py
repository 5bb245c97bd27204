"""Tells which collectives the cycle model merges with the previous one."""

from __future__ import annotations

from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.sizes import CollectiveSizes
from tf_ipu_shim.machine.memory.description import Step


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
