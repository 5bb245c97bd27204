"""Describes a program as blocks of values and steps, the input of the memory model."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple


class Mode(enum.Enum):
    """The location of a value's bytes.

    `ALWAYS`: in separate memory, from before the program starts until after it ends. `NEW`: in separate memory, while
    it is needed. `VIEW`: in the memory of the values it is made of, as a reshape or a slice is. `IN_PLACE`: in the
    memory of an operand that is not needed any more, else in new memory. `CARRIED`: an argument of a block, in memory
    of the caller's that the block may write to. `BORROWED`: the same, but read only.
    """

    ALWAYS = "always"
    NEW = "new"
    VIEW = "view"
    IN_PLACE = "in place"
    CARRIED = "carried"
    BORROWED = "borrowed"


class Value(NamedTuple):
    """A tensor.

    Args:
        owner: the name of its owner: a variable, or the op that makes it.
        kind: one of `plan.CATEGORIES`.
        mode: the memory that holds its bytes.
        of: for a view the values it is made of, for an in-place value the operands it may overwrite, by number.
        home: for a value that is stored to an always-live one (a variable's next value): that one's number, else -1.
        tiles: runs of tiles from tile 0: the bytes on each tile, and the number of tiles; empty if it is mapped
            linearly.
    """

    bytes: int
    owner: str
    kind: str
    mode: Mode = Mode.NEW
    of: tuple[int, ...] = ()
    home: int = -1
    tiles: tuple[tuple[int, int], ...] = ()

    @property
    def is_on_io_tiles(self) -> bool:
        """Returns whether it is a feed element on I/O tiles, which have memory for it at every step."""
        return self.mode is Mode.ALWAYS and self.kind == "argument"


class LoopResults(NamedTuple):
    """The places of a loop's outputs in its result, which is a tuple.

    Args:
        elements: for each output, the index of the element that it is, or is a part of.
        bytes: the size of each element for a whole mini-batch, None for a list; empty for TensorFlow's own results.
    """

    elements: tuple[int, ...]
    bytes: tuple[int | None, ...] = ()


class Step(NamedTuple):
    """One operation of an IPU.

    Args:
        inside: blocks that run during the step, one at a time: a loop's condition and body, the branches of a
            conditional, a called function.
        loops: whether the blocks overwrite the step's results (a loop), or make them (a branch or a call).
        work: its computation, if cycles are estimated: a `cycle_model.Computation` or `SyncPoint`.
        late: whether it only fetches the inputs of later steps, and so runs right before the first of them.
        loop_results: for a loop of a program, the places of its outputs in its result.
    """

    owner: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    inside: tuple[Block, ...] = ()
    loops: bool = False
    work: Any = None
    late: bool = False
    loop_results: LoopResults | None = None


class Block:
    """Steps that run one after the other, and the values between them.

    Attributes:
        steps: the steps in an order in which they can run.
        segments: numbers of steps before which all earlier ones must have run, ascending.
        results: numbers of the values that are needed when the block ends.
        keeps_order: whether the steps keep their order, even if another needs less memory.
        io_tiles: how many tiles of the IPU are set apart for elements of feeds, and for nothing else; the last ones.
        liveness: the `Liveness` that `liveness.live` found, once it is known.

    Example:
        >>> block = Block("double")
        >>> x = block.add(Value(400, "x", "argument"))
        >>> y = block.add(Value(400, "double", "temporary"))
        >>> block.run("x", (), (x,))
        >>> block.run("double", (x,), (y,))
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.segments: list[int] = []
        self.results: list[int] = []
        self.keeps_order = False
        self.io_tiles = 0
        self.liveness: Any = None

    def add(self, value: Value) -> int:
        """Adds a value; returns its number."""
        self.values.append(value)
        return len(self.values) - 1

    def run(
        self,
        owner: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        inside: Sequence[Block] = (),
        loops: bool = False,
        work: Any = None,
        late: bool = False,
        loop_results: LoopResults | None = None,
    ) -> None:
        """Adds a step; see `Step` for the arguments."""
        self.steps.append(Step(owner, tuple(inputs), tuple(outputs), tuple(inside), loops, work, late, loop_results))

    def keep_order(self) -> None:
        """Fixes the order of its steps and of all inner blocks' steps."""
        self.keeps_order = True
        for step in self.steps:
            for inner in step.inside:
                inner.keep_order()

    def begin_segment(self) -> None:
        """Makes later steps run after all present ones."""
        if self.steps and self.segments[-1:] != [len(self.steps)]:
            self.segments.append(len(self.steps))
