"""Defines a phase of one IPU (sync, exchange or compute set) and the spread of tensors over its tiles."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES
from tf_ipu_shim.machine.chips import ChipSpec

GRAIN_BYTES = 8
"""Least bytes of a tensor on a tile; PopLibs' linear mapping gives a tile at least 128 if there is that much."""
MINIMUM_BYTES_PER_TILE = 128


class Phase(NamedTuple):
    """One sync, exchange or compute set of an IPU.

    Args:
        kind: `"sync"`, `"exchange"` (between the tiles), `"compute"`, `"host"` (a stream copy), `"links"`.
        name: the name of the compute set or copy, behind the computation's own name.
        total: cycles of all tiles together; a compute set's balance is `total / (tiles * cycles)`.
        bytes: the bytes that are moved, over all tiles.
        vertex: type of its vertices; empty if there are none.
        vertices: how many there are.
        temporary_bytes: the temporary bytes that the IPU needs meanwhile, over all tiles, in addition to the tensors.
    """

    kind: str
    name: str
    cycles: int
    tiles: int
    total: int = 0
    bytes: int = 0
    vertex: str = ""
    vertices: int = 0
    temporary_bytes: int = 0

    def repeated(self, times: int) -> Phase:
        """Returns it with the cycles and bytes of several equal ones."""
        return self._replace(cycles=times * self.cycles, total=times * self.total, bytes=times * self.bytes)


class Spread(NamedTuple):
    """How a tensor is distributed over tiles."""

    tiles: int
    most: int


def spread(chip: ChipSpec, elements: int, element_bytes: int) -> Spread:
    """Returns the linear tile mapping: equal pieces of at least 128 bytes, in steps of 8.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> spread(CHIPS["gc200"], 1024, 4)
        Spread(tiles=32, most=32)
    """
    if elements <= 0:
        return Spread(0, 0)
    size = elements * element_bytes
    share = -(-size // chip.tiles)
    piece = max(MINIMUM_BYTES_PER_TILE, -(-share // GRAIN_BYTES) * GRAIN_BYTES)
    most = max(1, min(elements, piece // element_bytes))
    return Spread(-(-elements // most), most)


def compute_phase(cycles: int, where: Spread, elements: int, vertex: str) -> Phase:
    """Returns a compute set whose cycles grow with elements per tile; the last tile may have fewer."""
    share = elements / (where.tiles * where.most) if where.tiles else 0
    total = round(cycles * where.tiles * share)
    return Phase("compute", "", cycles, where.tiles, total, vertex=vertex, vertices=where.tiles)


def equal_phase(cycles: int, where: Spread, vertex: str, name: str = "") -> Phase:
    """Returns a compute set with equal cycles on all of its tiles."""
    return Phase("compute", name, cycles, where.tiles, cycles * where.tiles, vertex=vertex, vertices=where.tiles)


def exchange_phases(name: str, chip: ChipSpec, received: int, tiles: int, total: int | None = None) -> list[Phase]:
    """Returns a sync, and an exchange in which the busiest tile receives this many bytes."""
    cycles = -(-received // chip.exchange_bytes_per_cycle)
    moved = received * tiles if total is None else total
    return [Phase("sync", "", SYNC_CYCLES, chip.tiles), Phase("exchange", name, cycles, tiles, cycles * tiles, moved)]
