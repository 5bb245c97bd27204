"""Tiles, variables and what is alive when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tf_ipu_shim.reports.profile import VariableRow
from tf_ipu_shim.reports.pva.program import Program
from tf_ipu_shim.reports.pva.refusing import NO_CODE, NO_MAPPING, Refusing


class Bytes(NamedTuple):
    """Bytes of a tile. The gaps between tensors are not modelled: both figures are the same."""

    includingGaps: int
    excludingGaps: int


class CategoryMemory(Refusing):
    """What one of libpva's categories has on a tile.

    Args:
        total: bytes.
    """

    refused = dict.fromkeys(
        ("nonInterleaved", "interleaved", "overflowed"), "in which memory elements of a tile bytes are is not modelled"
    )

    def __init__(self, total: int) -> None:
        self.total = total


class Categories(Refusing):
    """The memory of one tile by libpva's categories, of which the profile has the constants alone.

    Args:
        constants: bytes of constants that are there.
    """

    refused = dict.fromkeys(
        (
            "vertexCode vertexInstanceState vertexFieldData vectorListDescriptor copyDescriptor controlCode "
            "internalExchangeCode globalExchangeCode hostExchangeCode"
        ).split(),
        NO_CODE,
    )

    def __init__(self, constants: int) -> None:
        self.constant = CategoryMemory(constants)


class TileMemory(Refusing):
    """The memory of one tile.

    Args:
        always: bytes that are there at every step.
        total: bytes at the largest step of its IPU.
        limit: that it has.
        constants: bytes of constants that are there.
    """

    refused = {"vertices": NO_CODE}

    def __init__(self, always: int, total: int, limit: int, constants: int = 0) -> None:
        self.category = Categories(constants)
        self.alwaysLiveBytes = always
        self.notAlwaysLiveBytes = total - always
        self.total = Bytes(total, total)
        over = max(0, total - limit)
        self.overflowed = Bytes(over, over)


class Tile(NamedTuple):
    """A tile."""

    memory: TileMemory


class IpuMemory(NamedTuple):
    """An IPU: its tiles."""

    tiles: list[Tile]


class Variable(NamedTuple):
    """A tensor.

    Args:
        name: of the variable, or of the op that makes it.
        size: bytes.
        category: what it is for; not in Graphcore's library.
        line: the user's own; not in Graphcore's library.
    """

    name: str
    size: int
    category: str
    line: str | None


def variable_of(row: VariableRow) -> Variable:
    """A variable of a profile's row."""
    return Variable(row.name, row.bytes, row.kind, row.line)


class LiveMemory:
    """What is alive at one step and not always.

    Args:
        by_ipu: its bytes on each IPU.
        variables: those of its own IPU, with where and when they are there.
        ipu: that the step is on.
        step: the step's number there.
    """

    def __init__(self, by_ipu: Sequence[int], variables: Sequence[VariableRow], ipu: int, step: int) -> None:
        self.bytes = sum(by_ipu)
        self.by_ipu = by_ipu
        self._variables = variables
        self._ipu, self._step = ipu, step

    @property
    def variables(self) -> list[Variable]:
        """Tensors that are there at this step, on the IPU that the step is on."""
        return [
            variable_of(row)
            for row in self._variables
            if row.ipu == self._ipu and not row.always and row.first <= self._step <= row.last
        ]


class LivenessStep(Refusing):
    """One step of the program, as its memory sees it.

    Args:
        program: what runs; None for what takes no cycles.
        memory: what is alive.
        name: of the op.
    """

    refused = {"notAlwaysLiveMemoryForTile": NO_MAPPING}

    def __init__(self, program: Program | None, memory: LiveMemory, name: str) -> None:
        self.program = program
        self.notAlwaysLiveMemory = memory
        self.name = name

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LiveMemory:
        """What is alive on one IPU."""
        here = self.notAlwaysLiveMemory
        return LiveMemory([here.by_ipu[ipu]], here._variables, ipu, here._step if ipu == here._ipu else -1)
