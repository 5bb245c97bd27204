"""Describes what a step of a program computes or moves, independent of the chip."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.cycle_model.planning import MatmulOptions

KINDS = (
    "product",
    "elementwise",
    "cast",
    "reduce",
    "window",
    "gather",
    "update",
    "copy",
    "random",
    "sort",
    "other",
    "host",
    "feed",
    "remote",
    "exchange",
    "collective",
)
"""What a step can be, see `Computation`."""


class Computation(NamedTuple):
    """What one step computes or moves.

    What `sizes` are depends on the kind:

    | kind | sizes |
    |---|---|
    | product | groups, rows, inner, columns, kernel positions |
    | elementwise | numbers given, operands, cycles of a vector's arithmetic, numbers of operands that are broadcast |
    | cast | numbers, bytes of one before and after |
    | reduce | numbers taken, numbers given, lengths of the axes from the innermost out: summed over and kept in turn |
    | window | numbers given, numbers of a window |
    | gather | numbers given, numbers of the table |
    | update | numbers written |
    | copy | numbers |
    | random | numbers |
    | sort | numbers, length of what is sorted |
    | other | numbers given |
    | host, remote | bytes; negative from the IPU |
    | feed | bytes, negative from the IPU; I/O tiles that they are on |
    | exchange | bytes, IPU that sends, IPU that receives; these three for each copy of it |
    | collective | bytes that each replica gets; replicas that it is for, 0 for all; bytes that go together; rounds |

    The replicas of a collective are neighbours. It goes together with others of its kind up to so many bytes; a sum is
    two rounds, a gather one.

    A product is one of `[rows, inner]` by `[inner, columns]` for each group and kernel position: a convolution's rows
    are the batch's output positions, inner its input channels.

    Args:
        kind: one of `KINDS`.
        name: of its compute set, such as `dense/BiasAdd/fusion/Op/Add`; empty for the op's own name.
        sizes: see above.
        element_bytes: size of a number.
        planning: how a product is planned; of no meaning for all else.
        product: of a sum: the product whose result it takes, with nothing but work in place between them.

    Example:
        >>> Computation("elementwise", "add/Op/Add", (1024, 2, 1, 0)).kind
        'elementwise'
    """

    kind: str
    name: str
    sizes: tuple[int, ...]
    element_bytes: int = 4
    planning: MatmulOptions = MatmulOptions()
    product: Computation | None = None


class SyncPoint(NamedTuple):
    """A step that several IPUs execute together: an exchange, loop or branch.

    Args:
        key: the same on all of them, and on no other step.
        trip_count: how often a loop runs; 1 for all else.
        parts: for each inner block of the step which of the loop's or branch's functions it is from.
        branches: whether one of the parts runs, and not all.
        schedule: of a pipeline's loop: one of `pipeline_schedule.SCHEDULES`; else empty.
        stages: its forward stages.
        training: whether it has backward stages.
        computation: what is done, of an exchange.
        counted: whether `times` is known; else it is a guess.
        condition: which of the functions says whether a loop goes on; -1 for none. Where `counted`, nothing runs it:
            such a loop is a `Repeat` of Poplar's.
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
