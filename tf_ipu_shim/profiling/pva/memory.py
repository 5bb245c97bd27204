"""Implements the memory classes of a pva report: tiles, variables and their liveness."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tf_ipu_shim.profiling.profile import VariableRow
from tf_ipu_shim.profiling.pva.program import Program
from tf_ipu_shim.profiling.pva.refusing import NO_CODE, NO_MAPPING, Refusing


class Bytes(NamedTuple):
    """Bytes of a tile. The gaps between tensors are not modelled: both figures are the same."""

    includingGaps: int
    excludingGaps: int


class CategoryMemory(Refusing):
    """The memory of one libpva category on a tile.

    Args:
        total: bytes.
    """

    refused = dict.fromkeys(
        ("nonInterleaved", "interleaved", "overflowed"), "the memory elements of a tile are not modelled"
    )

    def __init__(self, total: int) -> None:
        self.total = total


class Categories(Refusing):
    """The memory of one tile by libpva's categories; the profile only has the constants.

    Args:
        constants: bytes of live constants.
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
        always: bytes that are live at every step.
        total: bytes at the largest step of its IPU.
        constants: bytes of live constants.
        tensors: bytes at the largest step of the memory plan, without temporary memory of library calls: the bytes that
            may overflow.
    """

    refused = {"vertices": NO_CODE}

    def __init__(self, always: int, total: int, limit: int, constants: int, tensors: int) -> None:
        self.category = Categories(constants)
        self.alwaysLiveBytes = always
        self.notAlwaysLiveBytes = total - always
        self.total = Bytes(total, total)
        over = max(0, tensors - limit)
        self.overflowed = Bytes(over, over)


class Tile(NamedTuple):
    """A tile of an IPU and its memory."""

    memory: TileMemory


class IpuMemory(NamedTuple):
    """An IPU: its tiles."""

    tiles: list[Tile]


class Variable(NamedTuple):
    """A tensor.

    Args:
        size: bytes.
        category: its purpose; not in Graphcore's library.
        line: the user's; not in Graphcore's library.
    """

    name: str
    size: int
    category: str
    line: str | None


def make_variable(row: VariableRow) -> Variable:
    """Returns a variable of a profile's row."""
    return Variable(row.name, row.bytes, row.kind, row.line)


class Temporaries(NamedTuple):
    """Temporary memory of a library call.

    Args:
        tiles: the tiles that have some of it, each as much as the others.
    """

    name: str = ""
    bytes: int = 0
    tiles: int = 0


class LiveMemory:
    """The not-always-live memory at one step.

    Args:
        by_ipu: bytes of tensors on each IPU.
        steps: the step that each IPU is at; -1 for one that has not begun.
        calls: the bytes that the library call of that step needs in addition, on each IPU.
        variables: all of the profile's, with their places and lifetimes.
    """

    def __init__(
        self,
        by_ipu: Sequence[int],
        steps: Sequence[int],
        calls: Sequence[Temporaries],
        variables: Sequence[VariableRow],
        ipus: Collection[int],
    ) -> None:
        self.bytes = sum(by_ipu[ipu] + calls[ipu].bytes for ipu in ipus)
        self._by_ipu, self._steps, self._calls, self._variables, self._ipus = by_ipu, steps, calls, variables, ipus

    @property
    def variables(self) -> list[Variable]:
        """Tensors that are live then: each IPU's at its current step; and temporaries of library calls."""
        tensors = [
            make_variable(row)
            for row in self._variables
            if row.ipu in self._ipus and not row.always and row.first <= self._steps[row.ipu] <= row.last
        ]
        calls = [self._calls[ipu] for ipu in self._ipus if self._calls[ipu].bytes]
        return [*tensors, *(Variable(call.name, call.bytes, "temporary", None) for call in calls)]

    def on(self, ipu: int) -> LiveMemory:
        """Its part on one IPU; not in Graphcore's library."""
        return LiveMemory(self._by_ipu, self._steps, self._calls, self._variables, (ipu,))


class LivenessStep(Refusing):
    """One step of the program, as its memory sees it.

    Args:
        program: the program that runs; None if it needs no cycles.
    """

    refused = {"notAlwaysLiveMemoryForTile": NO_MAPPING}

    def __init__(self, program: Program | None, memory: LiveMemory, name: str) -> None:
        self.program = program
        self.notAlwaysLiveMemory = memory
        self.name = name

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LiveMemory:
        """Returns the not-always-live memory on one IPU at this step."""
        return self.notAlwaysLiveMemory.on(ipu)

    def __repr__(self) -> str:
        return f"<LivenessStep {self.name!r}: {self.notAlwaysLiveMemory.bytes:,} bytes not always live>"
