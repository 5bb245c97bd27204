"""Matrix products and convolutions on the accumulating units: how they are cut over the tiles, and what that takes.

As PopLibs' planner does it: of the ways to cut rows, columns and the axis that is summed over, the one with fewest
cycles whose temporary memory stays below a part of each tile. Only the method that uses the accumulating units (AMP)
is planned.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from tf_ipu_shim.cycle_model import vertices
from tf_ipu_shim.cycle_model.planning import DEFAULT_PROPORTION
from tf_ipu_shim.machine.chips import Chip

SYNC_CYCLES = 126
"""A sync of the tiles of one IPU, before each exchange: what the target of an `ipu21` gives for it."""


LEAST_LOAD_BYTES = 8
"""What the units load at a time at least: two numbers of fp32, four of fp16, eight of fp8."""


class ProductPlan(NamedTuple):
    """How a product is cut, and its cycles on the slowest tile.

    Args:
        split: tiles along groups, rows, columns and the axis that is summed over.
        serial: parts of that axis that are brought to the tiles one after the other, so that less is there at a time.
        accumulate: cycles to add these parts' sums up.
        exchange: cycles to bring operands to the tiles.
        rearrange: cycles to bring them into the order that the units want.
        compute: cycles of the units.
        reduce_exchange: cycles to bring partial sums together.
        reduce: cycles to add them up.
        temporary_bytes: on the tile with most: operands of the part in work, partial sums, those that it receives.
        partial_bytes: of these its own partial sums.
        operand_bytes: that the busiest tile receives of the operands, all parts together.
        received_bytes: that it receives of partial sums.
        busy_share: what the tiles have to do on average, as a part of what the fullest has: rounding up leaves some
            idle.
    """

    split: tuple[int, int, int, int]
    serial: int
    accumulate: int
    exchange: int
    rearrange: int
    compute: int
    reduce_exchange: int
    reduce: int
    temporary_bytes: int
    partial_bytes: int
    operand_bytes: int
    received_bytes: int
    busy_share: float

    @property
    def tiles(self) -> int:
        """Tiles that compute."""
        return math.prod(self.split)

    @property
    def sync(self) -> int:
        """Cycles of the syncs before its exchanges: of each part's operands, and of partial sums."""
        return SYNC_CYCLES * (self.serial + bool(self.reduce))

    @property
    def cycles(self) -> int:
        """All of it."""
        compute = self.rearrange + self.compute + self.accumulate
        return self.sync + self.exchange + compute + self.reduce_exchange + self.reduce


class Units(NamedTuple):
    """What the accumulating units take at a time.

    Args:
        units: columns at a time.
        inner: numbers of the summed axis at a time.
        loop: cycles for a row of one worker.
        partial_bytes: of a partial sum.
        load: cycles to load the coefficients.
    """

    units: int
    inner: int
    loop: int
    partial_bytes: int
    load: int


@functools.cache
def units_of(chip: Chip, element_bytes: int, partials_are_half: bool) -> Units:
    """The units for operands of a type, all that there are.

    Args:
        chip: the chip.
        element_bytes: 4 for fp32, 2 for fp16, 1 for fp8.
        partials_are_half: whether sums of 16-bit operands are kept in 16 bits, `partialsType`.
    """
    if element_bytes >= 4:
        units, inner, loop, partial = chip.amp_units_fp32, 8, 8, 4
    elif partials_are_half:
        units, inner, loop, partial = chip.amp_units_fp16, 16, 4, 2
    else:
        units, inner, loop, partial = chip.amp_units_fp16_fp32, 16, 4, 4
    weight_bytes = inner * min(element_bytes, 4)
    return Units(units, inner, loop, partial, math.ceil(units * weight_bytes / chip.load_bytes_per_cycle))


def _choices(chip: Chip, element_bytes: int, partials_are_half: bool) -> list[Units]:
    """Half sums may leave as many units idle as float sums do: better where there are few columns."""
    units = units_of(chip, element_bytes, partials_are_half)
    fewer = units_of(chip, element_bytes, False)
    if fewer.units == units.units:
        return [units]
    return [units, fewer._replace(partial_bytes=units.partial_bytes)]


def _worker(units: Units, positions: int, zeroes: bool) -> int:
    """Cycles of a worker for so many rows."""
    rows = max(positions, 3)
    if units.loop == 4:
        return (37 if zeroes else 38) + 4 * (rows - 3)
    return 46 + 8 * (rows - 3) + (2 + 4 * rows if zeroes else 0)


def vertex_cycles(chip: Chip, units: Units, rows: int, in_groups: int, out_groups: int, has_kernel: bool) -> int:
    """The compute set of a product on one tile.

    Args:
        chip: of which kind the tile is.
        units: what its units take at a time.
        rows: rows of the tile.
        in_groups: times `units.inner` of the summed axis, a kernel's positions included.
        out_groups: times `units.units` columns.
        has_kernel: whether it is a convolution with a kernel of several positions.

    Source: docs/facts.md, section "Planning formulas": the formula for one kernel position with one conv group; for
        larger kernels each position is one more pass.
    """
    workers = chip.worker_contexts
    each = -(-rows // workers)
    if not has_kernel:
        inner, first = workers * _worker(units, each, False), workers * _worker(units, each, True)
        others = (in_groups - 1) * (16 - 1 + out_groups * (19 + 6 + units.load + inner))
        return 50 + 12 + 1 + others + 11 + out_groups * (19 - 1 + 7 + units.load + first)
    row = workers * (17 + 3 + _worker(units, each, False) - 9 + (1 if units.partial_bytes == 2 else 0))
    return 109 + in_groups * out_groups * (units.load + row)


def _splits(extent: int, limit: int) -> Iterator[int]:
    """Numbers of parts worth trying: those that give each tile a different amount, about five a factor of ten."""
    last, parts = 0, 1.0
    top = min(extent, limit)
    while parts < top:
        share = -(-extent // int(parts))
        count = -(-extent // share)
        if count > last:
            last = count
            yield count
        parts = max(parts + 1, parts * 1.6)
    if top > last:
        yield top


@functools.lru_cache(maxsize=4096)
def plan_product(
    chip: Chip,
    groups: int,
    rows: int,
    inner: int,
    columns: int,
    positions: int = 1,
    element_bytes: int = 4,
    partials_are_half: bool = False,
    proportion: float = DEFAULT_PROPORTION,
) -> ProductPlan:
    """Plans a product of `[rows, inner]` by `[inner, columns]`, for each of so many groups.

    Args:
        chip: the chip.
        groups: products of this size, each by itself.
        rows: of the left operand; a convolution's output positions of the whole batch.
        inner: the axis that is summed over; a convolution's input channels.
        columns: of the right operand; a convolution's output channels.
        positions: of a convolution's kernel.
        element_bytes: size of a number.
        partials_are_half: see `units_of`.
        proportion: part of a tile that temporaries may take. Plans that need more bring their operands in parts;
            where none stays below, it is the one that takes least.

    Returns:
        The plan with fewest cycles.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> plan = plan_product(CHIPS["gc200"], 1, 16, 4096, 1024)
        >>> plan.tiles <= 1472
        True
    """
    limit = proportion * chip.bytes_per_tile
    ways = []
    for units in _choices(chip, element_bytes, partials_are_half):
        ways.append(Way(units, groups, rows, inner, columns, positions, element_bytes))
        if positions == 1 and rows != columns:  # the operands may change sides
            ways.append(Way(units, groups, columns, inner, rows, positions, element_bytes))
    plans = [way.plan(chip, split, limit) for way in ways for split in way.splits(chip.tiles)]
    fitting = [plan for plan in plans if plan.temporary_bytes <= limit]
    if fitting:
        return min(fitting, key=_cycles)
    return min(plans, key=_temporaries)


def _cycles(plan: ProductPlan) -> int:
    return plan.cycles


def _temporaries(plan: ProductPlan) -> int:
    return plan.temporary_bytes


def _parts_of(whole: int) -> Iterator[int]:
    return (part for part in range(1, whole + 1) if whole % part == 0)


class Way(NamedTuple):
    """A product with its operands on one of the two sides.

    Args:
        units: that compute it.
        groups: see `plan_product`, as all others.
        rows: of the operand that moves past the units.
        inner: the axis that is summed over.
        columns: of the operand that the units hold.
        positions: of a convolution's kernel.
        element_bytes: size of a number.
    """

    units: Units
    groups: int
    rows: int
    inner: int
    columns: int
    positions: int
    element_bytes: int

    @property
    def passes(self) -> int:
        """Times that the units go over the rows, for their columns: a kernel's positions are summed over too."""
        return math.ceil(self.inner / self.units.inner) * self.positions

    @property
    def in_group(self) -> int:
        """Numbers of the summed axis that lie together: as many as the units take, or a part of these.

        Source: docs/facts.md, section "Planning formulas": an input group divides what the units take.
        """
        whole = self.units.inner
        least = max(1, LEAST_LOAD_BYTES // min(self.element_bytes, 4))
        return next((part for part in _parts_of(whole) if part >= min(max(self.inner, least), whole)), whole)

    def splits(self, tiles: int) -> Iterator[tuple[int, int, int, int]]:
        """Ways to cut it worth trying: along the summed axis, none and those that leave fewest tiles idle."""
        by_group = min(self.groups, tiles)
        left = tiles // by_group
        column_groups = -(-self.columns // self.units.units)
        for by_column in _splits(column_groups, left):
            for by_row in _splits(self.rows, left // by_column):
                counts = list(_splits(self.passes, left // (by_column * by_row)))
                for by_inner in dict.fromkeys((1, *counts[-3:])):
                    yield by_group, by_row, by_column, by_inner

    def plan(self, chip: Chip, split: tuple[int, int, int, int], limit: float) -> ProductPlan:
        """What it takes, cut so, with as few parts one after the other as its memory allows.

        Args:
            chip: whose tiles they are.
            split: tiles along groups, rows, columns and the axis that is summed over.
            limit: bytes of a tile that temporaries may take; more only where that many parts do not suffice.
        """
        by_group, by_row, by_column, by_inner = split
        units, size = self.units, self.element_bytes
        each = -(-self.groups // by_group)
        tile_rows = -(-self.rows // by_row)
        tile_passes = math.ceil(self.passes / by_inner)
        tile_inner, tile_positions = math.ceil(tile_passes / self.positions), min(tile_passes, self.positions)
        tile_columns = math.ceil(math.ceil(self.columns / units.units) / by_column)
        # Neighbouring positions of a kernel look at the same inputs.
        activations = each * (tile_rows + tile_positions - 1) * tile_inner * self.in_group * size
        weights = each * tile_passes * self.in_group * tile_columns * units.units * size
        per_cycle = chip.exchange_bytes_per_cycle
        shared = chip.exchange_bytes_per_cycle_shared_bus if by_column % 2 == 0 else per_cycle
        partials = each * tile_rows * tile_columns * units.units
        received = reduce_exchange = reduce = 0
        if by_inner > 1:
            outputs = -(-partials // by_inner)
            received = outputs * (by_inner - 1) * units.partial_bytes
            reduce_exchange = -(-received // per_cycle)
            reduce = vertices.reduce(chip, outputs, by_inner, units.partial_bytes)
        serial, kept = 1, partials * units.partial_bytes + received
        operands = activations + weights
        while operands / serial + kept > limit and serial < tile_passes:
            serial = min(2 * serial, tile_passes)
        return ProductPlan(
            split=split,
            serial=serial,
            accumulate=(serial - 1) * vertices.elementwise(chip, partials, units.partial_bytes),
            exchange=-(-activations // shared) + -(-weights // per_cycle),
            rearrange=vertices.rearrange(activations, size),
            compute=each * vertex_cycles(chip, units, tile_rows, tile_passes, tile_columns, self.positions > 1),
            reduce_exchange=reduce_exchange,
            reduce=reduce,
            temporary_bytes=math.ceil(operands / serial) + kept,
            partial_bytes=partials * units.partial_bytes,
            operand_bytes=operands,
            received_bytes=received,
            busy_share=self._busy_share(split),
        )

    def _busy_share(self, split: tuple[int, int, int, int]) -> float:
        units = self.units
        extents = (self.groups, self.rows, -(-self.columns // units.units), self.passes)
        return math.prod(extent / (parts * -(-extent // parts)) for parts, extent in zip(split, extents))
