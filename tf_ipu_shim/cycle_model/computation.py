"""Describes the computation or transfer of a program's step, independent of the chip."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.cycle_model.planning import REARRANGED, MatmulOptions, OperandLayouts
from tf_ipu_shim.cycle_model.sizes import SIZES_OF_KIND, ExchangeSizes, Move, Sizes

KINDS = tuple(SIZES_OF_KIND)
"""The kinds of a step, see `Computation`."""


class Computation(NamedTuple):
    """The computation or transfer of one step.

    Args:
        kind: one of `KINDS`.
        name: the name of its compute set, such as `dense/BiasAdd/fusion/Op/Add`; empty for the op's own name.
        sizes: an object of the class that `SIZES_OF_KIND` names for the kind.
        element_bytes: bytes of an element.
        planning: planner options of a matmul; ignored for other kinds.
        product: for a reduction, the matmul it consumes, if only in-place ops are between.
        layouts: the layouts of a matmul's operands.

    Example:
        >>> Computation("elementwise", "add/Op/Add", SIZES_OF_KIND["elementwise"](1024, 2, 1)).kind
        'elementwise'
    """

    kind: str
    name: str
    sizes: Sizes
    element_bytes: int = 4
    planning: MatmulOptions = MatmulOptions()
    product: Computation | None = None
    layouts: OperandLayouts = REARRANGED


class SyncPoint(NamedTuple):
    """A step that several IPUs execute together: an exchange, loop or branch.

    Args:
        key: the same on all of them, and on no other step.
        trip_count: how often a loop runs; 1 for all else.
        parts: for each inner block of the step which of the loop's or branch's functions it is from.
        branches: whether one of the parts runs, and not all.
        schedule: the schedule of a pipeline's loop: one of `pipeline_schedule.SCHEDULES`; else empty.
        training: whether it has backward stages.
        counted: whether `times` is known; else it is a guess.
        condition: the index of the function that decides whether a loop continues; -1 for none. If `counted`, nothing
            runs
            it: such a loop is a `Repeat` of Poplar's.
    """

    key: int
    trip_count: float = 1.0
    parts: tuple[int, ...] = ()
    branches: bool = False
    schedule: str = ""
    stages: int = 0
    training: bool = False
    computation: Computation | None = None
    counted: bool = True
    condition: int = -1

    @property
    def moves(self) -> tuple[Move, ...]:
        """The copies of an exchange; none for all else."""
        sizes = None if self.computation is None else self.computation.sizes
        return sizes.moves if isinstance(sizes, ExchangeSizes) else ()
