"""Implements the program tree of a pva report: compute sets, exchanges, syncs, host copies, sequences."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_ipu_shim.profiling.pva.refusing import NO_CODE, Refusing

if TYPE_CHECKING:
    from tf_ipu_shim.profiling.profile import ComputeSetRow, ProgramRow


class _Type(enum.Enum):
    """The kinds of a program, as far as profiles of this package have them."""

    OnTileExecute = "compute"
    DoExchange = "exchange"
    GlobalExchange = "links"
    StreamCopyBegin = "host begin"
    StreamCopyMid = "host"
    OnEveryTileSwitch = "branch"
    Sync = "sync"
    Sans = "sans"
    SyncAns = "syncans"
    Repeat = "loop"
    Sequence = "step"


class VertexType(NamedTuple):
    """A kind of vertex."""

    name: str


class ComputeSetVertex(NamedTuple):
    """The vertices of one kind in a compute set.

    Args:
        countByTile: the number of its vertices on each tile; the tiles that take part are the first ones.
    """

    type: VertexType
    countByTile: list[int]
    estimatedCyclesByTile: list[int]


class ComputeSet:
    """The computation of tiles between two syncs.

    Args:
        total: cycles of all tiles together.
    """

    def __init__(self, row: ComputeSetRow, total: int) -> None:
        self.name = row.name
        self._row = row
        self._total = total

    def __repr__(self) -> str:
        return f"<ComputeSet {self.name!r}>"

    @functools.cached_property
    def vertices(self) -> list[ComputeSetVertex]:
        """Its vertices by kind: one kind, or none if it is not known."""
        if not self._row.vertex:
            return []
        cycles = by_tile(self._row.cycles, self._row.tiles, self._total)
        return [ComputeSetVertex(VertexType(self._row.vertex), [1] * self._row.tiles, cycles)]


def by_tile(cycles: int, tiles: int, total: int) -> list[int]:
    """Cycles of each tile: the figures that are known are the longest and the sum.

    Example:
        >>> by_tile(10, 3, 25)
        [10, 10, 5]
    """
    if not tiles:
        return []
    full = min(tiles, total // cycles if cycles else 0)
    rest = max(0, total - full * cycles)
    return [*([cycles] * full), *([rest] if full < tiles else []), *([0] * (tiles - full - 1))]


class Program(Refusing):
    """A program, which may consist of others.

    Args:
        row: the row of the profile.
        computeset: the compute set of an `OnTileExecute`; None for all else.
        kind: its type, if that is not the row's.
    """

    Type = _Type
    refused = {
        "codeBytesByTile": NO_CODE,
        "controlCodeByTile": NO_CODE,
        "vars": "a profile has them by step of liveness",
    }

    def __init__(self, row: ProgramRow, computeset: ComputeSet | None = None, kind: _Type | None = None) -> None:
        self._row = row
        self.computeset = computeset
        self._kind = kind
        self.children: list[Program] = []

    def __repr__(self) -> str:
        return f"<Program {self.name!r}, {self.type.name}>"

    @property
    def name(self) -> str:
        """Scope, op, and the names of XLA and PopLibs."""
        return self._row.name

    @property
    def type(self) -> _Type:
        """The kind of the program."""
        return self._kind or (_Type.Sequence if self._row.kind in ("part", "step") else _Type(self._row.kind))

    @property
    def _id(self) -> int:
        return self._row.id

    @property
    def line(self) -> str | None:
        """The user's own line; not in Graphcore's library."""
        return self._row.line

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """Cycles of each tile that takes part, the longest first."""
        if self._kind is _Type.StreamCopyBegin:
            return []
        return by_tile(self._row.cycles, self._row.tiles, self._row.total_cycles)

    def accept(self, visitor: ProgramVisitor) -> Any:
        """Calls the visitor's method for programs of this type, such as `visitDoExchange`, if it has one."""
        visit = getattr(visitor, f"visit{self.type.name}", None)
        return visit(self) if visit is not None else None

    def leaves(self) -> Iterator[Program]:
        """Yields the leaf programs in order, each once; not in Graphcore's library."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class ProgramVisitor:
    """The function that `Program.accept` calls: a subclass has a method for each type that it handles.

    Source: `pva.ProgramVisitor`.

    Example:
        >>> class Exchanges(ProgramVisitor):
        ...     def visitDoExchange(self, program):
        ...         print(program.name)
    """
