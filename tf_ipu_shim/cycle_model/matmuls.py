"""Plans matmuls and convolutions: how they are split over tiles, and their cycles.

As PopLibs' planner does it: of the divisions of rows, columns and the summed axis, the one with the fewest cycles whose
temporary memory fits. Only the method that uses the accumulating units (AMP) is planned.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from tf_ipu_shim.cycle_model import library_vertices, vertices
from tf_ipu_shim.cycle_model.planning import DEFAULT_PROPORTION, REARRANGED, OperandLayout, OperandLayouts
from tf_ipu_shim.machine.chips import ChipSpec

SYNC_CYCLES = 126
"""A sync of an IPU's tiles, before each exchange. Source: docs/reference/facts.md, section "Host traffic and syncs"."""

Window = tuple[tuple[int, int], ...]
MOST_CHANNELS = 4
"""Outer products and SLIC vertices compute products with at most so many input channels."""
LEAST_LOAD_BYTES = 8
"""The smallest load of the units: two elements of fp32, four of fp16, eight of fp8."""


class MatmulPlan(NamedTuple):
    """The split of a matmul and its cycles on the slowest tile.

    Args:
        split: tiles along groups, rows, columns and the axis that is summed over.
        serial: parts of that axis, or of the columns, that are computed one after the other: each needs less memory.
        between_parts: cycles to slice the parts' operands, and to add their sums up or to write their columns.
        exchange: cycles to copy operands to the tiles.
        rearrange: cycles to reorder them for the units.
        compute: cycles of the units.
        reduce_exchange: cycles to gather partial sums.
        reduce: cycles to add them up.
        temporary_bytes: the temporary bytes on the fullest tile: operands of the part in flight, its partial sums,
            received ones.
        operand_bytes: the bytes that the busiest tile receives of the operands, all parts together.
        received_bytes: the bytes that it receives of partial sums.
        busy_share: the average work of the tiles, as a part of the busiest tile's: rounding up leaves some idle.
    """

    split: tuple[int, int, int, int]
    serial: int
    between_parts: int
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
        """Number of computing tiles."""
        return math.prod(self.split)

    @property
    def sync(self) -> int:
        """Cycles of syncs before exchanges of operands and partial sums."""
        return SYNC_CYCLES * self.serial * (1 + bool(self.reduce))

    @property
    def cycles(self) -> int:
        """Total cycles."""
        compute = self.rearrange + self.compute + self.between_parts
        return self.sync + self.exchange + compute + self.reduce_exchange + self.reduce


class Units(NamedTuple):
    """The elements that the accumulating units (AMP) process at a time.

    Args:
        inner: numbers of the summed axis at a time.
        loop: cycles for a row of one worker.
        load: cycles to load the coefficients.
    """

    units: int
    inner: int
    loop: int
    partial_bytes: int
    load: int


@functools.cache
def units_of(chip: ChipSpec, element_bytes: int, partials_are_half: bool) -> Units:
    """Returns all AMP units of an operand type."""
    if element_bytes >= 4:
        units, inner, loop, partial = chip.amp_units_fp32, 8, 8, 4
    elif partials_are_half:
        units, inner, loop, partial = chip.amp_units_fp16, 16, 4, 2
    else:
        units, inner, loop, partial = chip.amp_units_fp16_fp32, 16, 4, 4
    weight_bytes = inner * min(element_bytes, 4)
    return Units(units, inner, loop, partial, math.ceil(units * weight_bytes / chip.load_bytes_per_cycle))


def _choices(chip: ChipSpec, element_bytes: int, partials_are_half: bool) -> list[Units]:
    """Returns unit configurations: float16 partials may use fewer units if there are few columns."""
    units = units_of(chip, element_bytes, partials_are_half)
    fewer = units_of(chip, element_bytes, False)
    if fewer.units == units.units:
        return [units]
    return [units, fewer._replace(partial_bytes=units.partial_bytes)]


_WORKER_FP32, _WORKER_FP16 = (24, 47, 46, 46), (22, 33, 42, 38)
"""Cycles of a worker with no row, one, two and three that adds: PerformanceEstimation.hpp:432 to 479."""
_KERNEL_WORKER_FP32, _KERNEL_WORKER_FP16 = (17, 33, 44, 45), (17, 29, 34, 34)
"""The same of a vertex for kernels of several positions: PerformanceEstimation.hpp:778 to 792."""


@functools.lru_cache(maxsize=4096)
def _worker(units: Units, rows: int, zeroes: bool) -> int:
    """Returns a worker's cycles for a number of rows.

    Source: PopLibs `poplin/PerformanceEstimation.hpp`, lines 397 to 490 and 49 to 58.
    """
    if units.loop == 4:
        return _WORKER_FP16[min(rows, 3)] - zeroes + 4 * max(0, rows - 3) - _RETAINED
    zeroing = 2 + (8 if units.units == 16 else 4) * rows if zeroes and rows else 0
    return _WORKER_FP32[min(rows, 3)] + 8 * max(0, rows - 3) + zeroing


def _slowest(units: Units, rows: int, workers: int, zeroes: bool) -> int:
    """Returns the cycles of all workers: the last one also signals the supervisor, which costs 14."""
    most = workers * _worker(units, -(-rows // workers), zeroes)
    return max(most, workers * _worker(units, rows // workers, zeroes) + 14)


_RETAINED, _RETAINED_OF_INPUTS = 7, 3
"""Cycles that a worker of fp16 spends in its first pass only, and again for each input group: lines 49 to 58."""


def vertex_cycles(chip: ChipSpec, units: Units, rows: int, in_groups: int, out_groups: int, positions: int = 1) -> int:
    """Returns the cycles of a matmul's compute set on one tile, with one conv group.

    Source: PopLibs `poplin/PerformanceEstimation.hpp`, lines 574 to 613 (one position), 694 to 713 and 759 to 1000.
    """
    workers = chip.worker_contexts
    each = -(-rows // workers)
    if positions == 1:
        retained = workers * (_RETAINED + _RETAINED_OF_INPUTS * (in_groups - 1)) if units.loop == 4 else 0
        inner, first = (_slowest(units, rows, workers, zeroes) for zeroes in (False, True))
        others = (in_groups - 1) * (15 + out_groups * (25 + units.load + inner))
        return 50 + retained + 13 + others + 11 + out_groups * (25 + units.load + first)
    half_sums = units.partial_bytes == 2
    core = _KERNEL_WORKER_FP16 if units.loop == 4 else _KERNEL_WORKER_FP32
    row = workers * (17 + half_sums + 3 + core[min(each, 3)] + units.loop * max(0, each - 3) - 9)
    outer = math.isqrt(positions)
    kernel = 14 * outer + positions * (12 + units.load + 18 + row)
    zeroed = math.ceil(rows * units.units / workers / (4 if half_sums else 2)) + 5
    zeroing = workers * (9 + half_sums + out_groups * zeroed) + out_groups * 23 - 6
    return 109 + 9 * workers + zeroing + 17 + in_groups * (14 + out_groups * (14 + kernel))


def _splits(extent: int, limit: int) -> Iterator[int]:
    """Yields part counts worth trying: distinct amounts per tile, about five per factor of ten."""
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
def plan_matmul(
    chip: ChipSpec,
    groups: int,
    rows: int,
    inner: int,
    columns: int,
    positions: int = 1,
    element_bytes: int = 4,
    partials_are_half: bool = False,
    proportion: float = DEFAULT_PROPORTION,
    layouts: OperandLayouts = REARRANGED,
    window: Window = (),
) -> MatmulPlan:
    """Plans a matmul of `[rows, inner]` by `[inner, columns]` for each group.

    Args:
        layouts: the layout of each operand on the tiles.
        window: see `MatmulSizes`; one axis if it is not given.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> plan = plan_matmul(CHIPS["gc200"], 1, 16, 4096, 1024)
        >>> plan.tiles <= 1472
        True
    """
    limit = proportion * chip.bytes_per_tile
    window = window or (((positions, rows),) if positions > 1 else ())
    is_gradient = any(kernel > result for kernel, result in window)
    sides = REARRANGED if is_gradient else layouts
    orders = [
        _OperandOrder(units, groups, rows, inner, columns, positions, element_bytes, *sides, window, is_gradient)
        for units in _choices(chip, element_bytes, partials_are_half)
    ]
    candidates = [order for direct in orders for kept in _kept_axes(window) for order in direct.expanded(kept)]
    return _fastest(candidates, chip, limit)


def _fastest(candidates: list[_OperandOrder], chip: ChipSpec, limit: float) -> MatmulPlan:
    """Returns the fastest plan whose temporaries are within the limit, which doubles until there is one.

    With a limit of 0 it is the plan with the least temporaries.

    Source: PopLibs `poplin/ConvPlan.cpp`, lines 1431 to 1453 and 1703 to 1712.
    """
    plans: list[MatmulPlan] = []
    cycles = math.inf
    for order in sorted(candidates, key=_least_cycles):
        if order.least_cycles >= cycles * chip.tiles:
            break
        for split in order.splits(chip.tiles):
            plan = order.plan(chip, split, limit, cycles)
            plans.append(plan)
            if plan.temporary_bytes <= limit:
                cycles = min(cycles, plan.cycles)
    found = _best(plans, limit)
    if found.temporary_bytes <= limit or limit < 1:
        return found
    wider = limit * 2 ** math.ceil(math.log2(found.temporary_bytes / limit))
    return _fastest(candidates, chip, wider if wider < 4 * chip.bytes_per_tile else math.inf)


def _best(plans: list[MatmulPlan], limit: float) -> MatmulPlan:
    within = [plan for plan in plans if plan.temporary_bytes <= limit]
    return min(within, key=_cycles) if within else min(plans, key=_temporaries)


def _kept_axes(window: Window) -> set[Window]:
    """Returns the sets of a kernel's axes that stay axes: the elements of the others may become input channels.

    Source: PopLibs `poplin/ConvPlan.cpp`, lines 623 to 668; `poplin/ConvModel.cpp`, lines 1306 to 1345, for the costs.
    """
    counts = range(len(window) + 1)
    return {kept for count in counts for kept in itertools.combinations(window, count)}


@functools.lru_cache(maxsize=4096)
def _inputs(rows: int, positions: int, window: Window) -> int:
    """Returns how many inputs meet so many rows and positions of a kernel: neighbouring positions share some."""
    if not window:
        return rows
    part = (rows / math.prod(result for _, result in window)) ** (1 / len(window))
    share = (positions / math.prod(kernel for kernel, _ in window)) ** (1 / len(window))
    lengths = [(max(1.0, min(1.0, part) * result), max(1.0, share * kernel)) for kernel, result in window]
    return math.ceil(rows * math.prod((length + reach - 1) / length for length, reach in lengths))


def _cycles(plan: MatmulPlan) -> int:
    return plan.cycles


def _least_cycles(order: _OperandOrder) -> int:
    return order.least_cycles


def _temporaries(plan: MatmulPlan) -> int:
    return plan.temporary_bytes


@functools.cache
def _in_group(inner: int, units: int, element_bytes: int) -> int:
    """Returns the adjacent elements of the summed axis: as many as the units accept, or a part.

    Source: docs/reference/facts.md, section "Planning formulas": an input group divides the input size of the units.
    """
    least = max(1, LEAST_LOAD_BYTES // min(element_bytes, 4))
    wanted = min(max(inner, least), units)
    return next((part for part in range(1, units + 1) if units % part == 0 and part >= wanted), units)


class _OperandOrder(NamedTuple):
    """A matmul with its operands on one of the two sides.

    Args:
        groups: see `plan_matmul`, also for the other arguments.
        rows: the rows of the operand that moves past the units.
        inner: the axis that is summed over.
        columns: the columns of the operand that the units hold.
        positions: the positions of a convolution's kernel.
        moving: the layout of the moving operand on the tiles.
        held: the same for the operand that the units hold.
        window: the kernel's axes that `positions` counts.
        rearranges: whether both operands are rearranged: for a gradient of weights, and if other axes of the kernel are
            input channels.
    """

    units: Units
    groups: int
    rows: int
    inner: int
    columns: int
    positions: int
    element_bytes: int
    moving: OperandLayout = OperandLayout.OTHER
    held: OperandLayout = OperandLayout.OTHER
    window: Window = ()
    rearranges: bool = False

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""
        return math.ceil(self.inner / self.units.inner) * self.positions

    def expanded(self, kept: Window) -> Iterator[_OperandOrder]:
        """Yields this matmul with fewer axes of the kernel, if that saves passes; without any, both sides' orders."""
        left = math.prod(kernel for kernel, _ in kept)
        order = self
        if kept != self.window:
            inner = self.inner * self.positions // left
            order = self._replace(inner=inner, positions=left, window=kept, rearranges=True,
                                  moving=OperandLayout.OTHER, held=OperandLayout.OTHER)  # fmt: skip
            if order.passes >= self.passes:
                return
        yield order
        if left == 1 and self.rows != self.columns:  # the operands may change sides
            yield order._replace(rows=self.columns, columns=self.rows, moving=order.held, held=order.moving)

    @property
    def least_cycles(self) -> int:
        """The cycles of all tiles together, if nothing but rows took time; 0 if another method may be faster."""
        if self.inner <= MOST_CHANNELS:
            return 0
        return self.groups * self.rows * self.passes * -(-self.columns // self.units.units) * self.units.loop

    def splits(self, tiles: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields splits worth trying: along the summed axis, none and those leaving fewest idle tiles."""
        column_groups = -(-self.columns // self.units.units)
        for by_group in self._group_splits(tiles):
            tiles_per_group = tiles // by_group
            for by_column in _splits(column_groups, tiles_per_group):
                for by_row in _splits(self.rows, tiles_per_group // by_column):
                    counts = list(_splits(self.passes, tiles_per_group // (by_column * by_row)))
                    for by_inner in dict.fromkeys((1, *counts[-3:])):
                        yield by_group, by_row, by_column, by_inner

    def _group_splits(self, tiles: int) -> list[int]:
        """Returns the largest split of the groups, and up to two that leave fewer tiles idle, as each tile has more.

        With 1,536 groups on 1,472 tiles, some tiles have two. With four groups on three tiles, each has one and a
        third.
        """
        largest = min(self.groups, tiles)
        loads: dict[int, float] = {}
        for each in (1, 2, 3, 4, 6, 8):
            parts = -(-self.groups // each)
            if parts <= tiles:
                loads.setdefault(parts, each / (tiles // parts))
        most = -(-self.groups // largest) / (tiles // largest)
        better = sorted((load, parts) for parts, load in loads.items() if parts != largest and load < 0.95 * most)
        return [largest, *(parts for _, parts in better[:2])]

    def plan(
        self, chip: ChipSpec, split: tuple[int, int, int, int], limit: float, most_cycles: float = math.inf
    ) -> MatmulPlan:
        """Returns the fastest plan of a split: at once, or in as few parts as its memory needs.

        Args:
            most_cycles: a plan with as many is of no use, and parts take more.

        Source: PopLibs `poplin/ConvModel.cpp`, lines 3305 to 3352: parts of the summed axis or of the columns.
        """
        plans = [self._in_parts(chip, split, (1, 1))]
        if plans[0].temporary_bytes <= limit or plans[0].cycles >= most_cycles:
            return plans[0]
        _, _, by_column, by_inner = split
        channels = -(-math.ceil(self.passes / by_inner) // self.positions)
        columns = -(-math.ceil(self.columns / self.units.units) // by_column)
        for most in ((channels, 1), (1, columns)):
            parts = (1, 1)
            while parts != most:
                parts = (min(2 * parts[0], most[0]), min(2 * parts[1], most[1]))
                plans.append(self._in_parts(chip, split, parts))
                if plans[-1].temporary_bytes <= limit:
                    break
        return _best(plans, limit)

    def _in_parts(self, chip: ChipSpec, split: tuple[int, int, int, int], parts: tuple[int, int]) -> MatmulPlan:
        """Returns the plan of a split whose summed axis, or columns, are computed one part after the other.

        The rows are on the tiles during all parts of the columns.
        """
        by_group, by_row, by_column, by_inner = split
        units, size, serial = self.units, self.element_bytes, math.prod(parts)
        each = -(-self.groups // by_group)
        tile_rows = -(-self.rows // by_row)
        tile_passes = math.ceil(math.ceil(self.passes / by_inner) / parts[0])
        tile_inner, tile_positions = math.ceil(tile_passes / self.positions), min(tile_passes, self.positions)
        tile_columns = math.ceil(math.ceil(math.ceil(self.columns / units.units) / by_column) / parts[1])
        in_group = _in_group(min(self.inner, units.inner), units.inner, size)
        activations = each * _inputs(tile_rows, tile_positions, self.window) * tile_inner * in_group * size
        weights = each * tile_passes * in_group * tile_columns * units.units * size
        # Of what Poplar allocated for this matmul, each tile has its part already; poplin/ConvModel.cpp, lines 1048 to
        # 1069. Another order is made where the elements lie, before they go to several tiles; lines 1455 to 1485.
        arriving = activations - (activations // by_column if self.moving is OperandLayout.ALLOCATED else 0)
        arriving_weights = weights - (weights // by_row if self.held is OperandLayout.ALLOCATED else 0)
        reordered = parts[0] * (0 if self.moving else -(-activations // by_column))
        reordered += serial * (-(-weights // by_row) if self.rearranges else 0)
        per_cycle = chip.exchange_bytes_per_cycle
        shared = chip.exchange_bytes_per_cycle_shared_bus if by_column % 2 == 0 else per_cycle
        partials = each * tile_rows * tile_columns * units.units
        outputs = -(-partials // by_inner)
        received = reduce_exchange = reduce = 0
        if by_inner > 1:
            received = outputs * (by_inner - 1) * units.partial_bytes
            reduce_exchange = -(-received // per_cycle)
            reduce = library_vertices.reduce_partial_sums(chip, outputs, by_inner, units.partial_bytes, size)
        compute = each * vertex_cycles(chip, units, tile_rows, tile_inner, tile_columns, tile_positions)
        if self.inner <= MOST_CHANNELS:
            compute = min(compute, self._other_methods(chip, split, each, tile_rows, compute))
        added = outputs * units.partial_bytes if parts[0] > 1 else 0
        return MatmulPlan(
            split=split,
            serial=serial,
            between_parts=serial * self._between_parts(chip, parts, outputs),
            exchange=-(-parts[0] * arriving // shared) + -(-(serial * arriving_weights + reordered) // per_cycle),
            rearrange=vertices.rearrange(chip, reordered, size, self.inner * self.columns),
            compute=serial * compute,
            reduce_exchange=serial * reduce_exchange,
            reduce=serial * reduce,
            temporary_bytes=activations + weights + partials * units.partial_bytes + received + added,
            partial_bytes=partials * units.partial_bytes + added,
            operand_bytes=parts[0] * activations + serial * weights,
            received_bytes=received,
            busy_share=self._busy_share(split),
        )

    def _between_parts(self, chip: ChipSpec, parts: tuple[int, int], outputs: int) -> int:
        """Returns the cycles of a part besides the matmul's own.

        Its operands are sliced where they lie. Its sums are added to the others', or its columns are written.

        Source: PopLibs `poplin/ConvModel.cpp`, lines 1660 to 1777 and 1973 to 1988.
        """
        if parts == (1, 1):
            return 0
        by_inner = parts[0] > 1
        summed, operand = self.groups * self.inner, vertices.float_of(self.element_bytes)
        cycles = sum(
            library_vertices.dynamic_slice(chip, -(-summed * extent // (chip.tiles * math.prod(parts))), operand)
            for extent in (self.columns * self.positions, self.rows)[: 1 + by_inner]
        )
        sums = vertices.float_of(self.units.partial_bytes)
        if by_inner:
            return cycles + vertices.elementwise(chip, outputs, "add", sums)
        return cycles + library_vertices.dynamic_slice(chip, outputs, operand)

    def _other_methods(
        self, chip: ChipSpec, split: tuple[int, int, int, int], each: int, tile_rows: int, amp: int
    ) -> int:
        """Returns the cycles of an outer product or of SLIC vertices; of AMP if neither can compute it."""
        _, _, by_column, by_inner = split
        if self.inner == 1 and self.positions == 1:
            columns = math.ceil(self.columns / by_column / chip.worker_contexts)
            dtype = vertices.float_of(self.element_bytes)
            return each * chip.worker_contexts * library_vertices.outer_product(tile_rows, columns, columns, dtype)
        channels = max(self.inner, self.columns)
        if self.positions == 1 or self.groups == 1 or channels > 4 or self.element_bytes != 2 or by_inner > 1:
            return amp
        channels = 1 << (channels - 1).bit_length()
        together, side = 4 // channels, math.isqrt(self.positions)
        kernels = -(-side // 4) * -(-self.positions // side)
        half_sums = self.units.partial_bytes == 2
        chains = max(2, min(4, self.units.units // 4))
        one = library_vertices.slic(chip, tile_rows, kernels, together, channels, half_sums, chains)
        return -(-each // together) * one

    def _busy_share(self, split: tuple[int, int, int, int]) -> float:
        units = self.units
        extents = (self.groups, self.rows, -(-self.columns // units.units), self.passes)
        return math.prod(extent / (parts * -(-extent // parts)) for parts, extent in zip(split, extents))
