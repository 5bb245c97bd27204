"""Splits gathers, scatters, slices and updates over tiles, and returns their phases."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from tf_ipu_shim.cycle_model import library_vertices, vertices
from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.phase import GRAIN_BYTES, Phase, Spread, equal_phase, exchange_phases, spread
from tf_ipu_shim.cycle_model.sizes import GatherSizes, UpdateSizes
from tf_ipu_shim.machine.chips import ChipSpec


def gather(computation: Computation, sizes: GatherSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a gather or a slice whose place is known when it runs."""
    result_elements, table, row, is_slice = sizes
    if not result_elements:
        return ()
    size = computation.element_bytes
    where = spread(chip, result_elements, size)
    taken = exchange_phases("", chip, where.most * size, where.tiles)
    if is_slice:  # each tile copies from its part
        cycles = library_vertices.dynamic_slice(chip, where.most, _dtype(size))
        return equal_phase(cycles, where, "popops::DynamicSlice1D"), *taken
    split = split_lookup(chip, result_elements, table, row, size)
    return *split.copies, equal_phase(split.cycles, split.where, "popops::MultiSlice"), *taken


def _dtype(size: int) -> str:
    return vertices.float_of(size) if size > 1 else "bool"


class SplitLookup(NamedTuple):
    """A lookup that is split over tiles: cycles of a tile, tiles of all copies of the table, and their creation."""

    cycles: int
    where: Spread
    copies: tuple[Phase, ...]

    @property
    def total_cycles(self) -> int:
        """Cycles with the copies."""
        return self.cycles + sum(phase.cycles for phase in self.copies)


def split_lookup(chip: ChipSpec, elements: int, table: int, row: int, size: int) -> SplitLookup:
    """Returns the fastest split of a lookup (popops/DynamicSlice.cpp:4350)."""
    plans = []
    for parts in (1 << power for power in range(chip.tiles.bit_length())):
        within = dataclasses.replace(chip, tiles=chip.tiles // parts)
        cycles, where = look_up(within, -(-elements // parts), table, row, size, writes=False)
        copies = exchange_phases("", chip, where.most * size, where.tiles * parts) if parts > 1 else []
        if parts == 1 or where.most * size <= chip.bytes_per_tile // 4:
            plans.append(SplitLookup(cycles, Spread(where.tiles * parts, where.most), tuple(copies)))
    return min(plans, key=lambda plan: plan.total_cycles)


def look_up(
    chip: ChipSpec, elements: int, table: int, row: int, size: int, writes: bool, adds: bool = False
) -> tuple[int, Spread]:
    """Returns the cycles of a lookup on a tile, and the tiles of the table.

    The table's rows are divided over tiles, and their columns if there are fewer rows than tiles. Each tile reads all
    offsets, shared by its workers; the number that it finds is as for evenly distributed offsets.
    Source: popops/DynamicSlice.cpp:4356 to 4384.
    """
    row = max(1, min(row or max(1, 128 // size), elements))
    entries, offsets = max(1, table // row), -(-elements // row)
    grain = max(1, GRAIN_BYTES // size)
    columns = max(1, min(chip.tiles // min(entries, chip.tiles), row // grain))
    parts = min(entries, chip.tiles // columns)
    each = -(-offsets // chip.worker_contexts)
    in_range = math.ceil(each / parts)
    dtype = _dtype(size)
    if adds:
        cycles = library_vertices.multi_update_add(chip, each, -(-row // columns), dtype, in_range)
    else:
        cycles = library_vertices.multi_slice(chip, each, -(-row // columns), dtype, in_range, writes)
    return cycles, Spread(parts * columns, -(-table // (parts * columns)))


def update(computation: Computation, sizes: UpdateSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a scatter or an update of a slice."""
    written, table, row, is_slice, adds = sizes
    if not written:
        return ()
    size = computation.element_bytes
    where = spread(chip, written, size)
    if is_slice:
        cycles = library_vertices.dynamic_slice(chip, where.most, _dtype(size))
    else:
        cycles, where = look_up(chip, written, max(table, written), row, size, writes=True, adds=adds)
    vertex = f"popops::{'DynamicUpdateSlice1D' if is_slice else 'MultiUpdateAdd' if adds else 'MultiUpdate'}"
    received = spread(chip, written, size).most * size
    phases = exchange_phases("", chip, received, where.tiles)
    return *phases, equal_phase(cycles, where, vertex)
