"""Plans matmuls and convolutions: how they are split over tiles, and their cycles.

As PopLibs' planner does it: of the divisions of rows, columns and the summed axis, the one with the fewest cycles whose
temporary memory fits. Only the method that uses the accumulating units (AMP) is planned.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from tf_ipu_shim.cycle_model import library_vertices, vertices
from tf_ipu_shim.cycle_model.planning import DEFAULT_PROPORTION, REARRANGED, OperandLayout, OperandLayouts
from tf_ipu_shim.cycle_model.units import Units, choices_of, vertex_cycles
from tf_ipu_shim.machine.chips import ChipSpec

SYNC_CYCLES = 126
"""A sync of an IPU's tiles, before each exchange. Source: docs/reference/facts.md, section "Host traffic and syncs"."""

Window = tuple[tuple[int, int], ...]
Split = tuple[int, int, int, int]
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
        extents: what is split: groups, rows, groups of columns, and passes of the summed axis.
    """

    split: Split
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
    extents: Split

    @property
    def tiles(self) -> int:
        """Number of computing tiles."""
        return math.prod(self.split)

    @property
    def busy_share(self) -> float:
        """The average work of the tiles, as a part of the busiest tile's: rounding up leaves some idle."""
        return math.prod(extent / (parts * -(-extent // parts)) for parts, extent in zip(self.split, self.extents))

    @property
    def sync(self) -> int:
        """Cycles of syncs before exchanges of operands and partial sums."""
        return SYNC_CYCLES * self.serial * (1 + bool(self.reduce))

    @property
    def cycles(self) -> int:
        """Total cycles."""
        compute = self.rearrange + self.compute + self.between_parts
        return self.sync + self.exchange + compute + self.reduce_exchange + self.reduce


@functools.lru_cache(maxsize=16384)
def _splits(extent: int, limit: int) -> tuple[int, ...]:
    """Returns part counts worth trying: distinct amounts per tile, about five per factor of ten."""
    counts: list[int] = []
    parts = 1.0
    top = min(extent, limit)
    while parts < top:
        count = -(-extent // -(-extent // int(parts)))
        if not counts or count > counts[-1]:
            counts.append(count)
        parts = max(parts + 1, parts * 1.6)
    if not counts or top > counts[-1]:
        counts.append(top)
    return tuple(counts)


@functools.lru_cache(maxsize=16384)
def _inner_splits(passes: int, limit: int) -> tuple[int, ...]:
    """Returns the part counts of the summed axis: one, and the three that leave fewest tiles idle."""
    return tuple(dict.fromkeys((1, *_splits(passes, limit)[-3:])))


@functools.lru_cache(maxsize=4096)
def _part_counts(extent: int) -> tuple[int, ...]:
    """Returns the numbers of parts, from two, that have different shares of an extent, and leave no part without."""
    shares = {-(-extent // count) for count in range(2, math.isqrt(extent) + 2)} | set(range(1, math.isqrt(extent) + 1))
    return tuple(sorted({-(-extent // share) for share in shares} - {1}))


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
        for units in choices_of(chip, element_bytes, partials_are_half)
    ]
    candidates = [order for direct in orders for kept in _kept_axes(window) for order in direct.expanded(kept)]
    return _fastest(candidates, chip, limit)


def _fastest(candidates: list[_OperandOrder], chip: ChipSpec, limit: float) -> MatmulPlan:
    """Returns the fastest plan whose temporaries are within the limit, which doubles until there is one.

    With a limit of 0 it is the plan with the least temporaries. Of equal plans it is the first.

    Source: PopLibs `poplin/ConvPlan.cpp`, lines 1431 to 1453 and 1703 to 1712.
    """
    found, place, cycles = None, (0, 0), math.inf
    orders = sorted(candidates, key=_least_cycles)
    for number, order in enumerate(orders):
        if order.least_cycles >= cycles * chip.tiles:
            break
        for least_cycles, which, split in sorted(order.trials(chip, cycles)):
            if least_cycles > cycles:
                break
            plan = order.plan(chip, split, limit, cycles)
            if plan is not None and (plan.cycles, (number, which)) < (cycles, place):
                found, place, cycles = plan, (number, which), plan.cycles
    if found is not None:
        return found
    least = min((share for order in orders for share in order.smallest_shares(chip.tiles)), key=_temporaries)
    if limit < 1:
        return least.plan(chip)
    wider = limit * 2 ** math.ceil(math.log2(least.temporary_bytes / limit))
    return _fastest(candidates, chip, wider if wider < 4 * chip.bytes_per_tile else math.inf)


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


def _least_cycles(order: _OperandOrder) -> int:
    return order.least_cycles


def _temporaries(share: _Share) -> int:
    return share.temporary_bytes


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

    def splits(self, tiles: int) -> Iterator[Split]:
        """Yields splits worth trying: along the summed axis, none and those leaving fewest idle tiles."""
        column_groups, passes = -(-self.columns // self.units.units), self.passes
        for by_group in self._group_splits(tiles):
            tiles_per_group = tiles // by_group
            for by_column in _splits(column_groups, tiles_per_group):
                for by_row in _splits(self.rows, tiles_per_group // by_column):
                    for by_inner in _inner_splits(passes, tiles_per_group // (by_column * by_row)):
                        yield by_group, by_row, by_column, by_inner

    def trials(self, chip: ChipSpec, most_cycles: float) -> Iterator[tuple[int, int, Split]]:
        """Yields the splits with cycles that they take at least, if these are few enough, and their number."""
        groups, rows, passes, columns = self.groups, self.rows, self.passes, -(-self.columns // self.units.units)
        a_pass, a_row = self.units.least_cycles(chip)
        if self.inner <= MOST_CHANNELS:
            a_pass = a_row = 0
        for number, split in enumerate(self.splits(chip.tiles)):
            by_group, by_row, by_column, by_inner = split
            all_passes = -(-groups // by_group) * -(-passes // by_inner) * -(-columns // by_column)
            least = all_passes * (a_pass + a_row * -(-rows // by_row))
            if least <= most_cycles:
                yield least, number, split

    def smallest_shares(self, tiles: int) -> Iterator[_Share]:
        """Yields the shares of the splits with most parts, which need least memory."""
        for split in self.splits(tiles):
            whole = self.share(split)
            yield whole
            for part_counts in whole.part_counts():
                if part_counts:
                    yield self.share(split, part_counts[-1])

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

    def plan(self, chip: ChipSpec, split: Split, limit: float, most_cycles: float = math.inf) -> MatmulPlan | None:
        """Returns the fastest plan of a split within the limit: at once, or in parts that need less memory.

        Args:
            most_cycles: a plan with more is of no use, and parts take more than the whole.

        Source: PopLibs `poplin/ConvModel.cpp`, lines 3305 to 3352: parts of the summed axis or of the columns.
        """
        share, found = self.share(split), None
        if share.unit_cycles(chip) > most_cycles:
            return None
        whole = share.plan(chip)
        if share.fits(limit):
            return whole
        for part_counts in share.part_counts():
            if not (part_counts and self.share(split, part_counts[-1]).fits(limit)):
                continue
            # Each part is sliced, computed and written: see `test_parts_take_no_less_than_the_whole`.
            first = bisect.bisect_left(part_counts, True, key=lambda parts: self.share(split, parts).fits(limit))
            for parts in part_counts[first:]:
                if whole.cycles + (math.prod(parts) - 1) * SYNC_CYCLES > most_cycles:
                    break
                plan = self.share(split, parts).plan(chip)
                if plan.cycles < most_cycles or (found is None and plan.cycles == most_cycles):
                    found, most_cycles = plan, plan.cycles
        return found

    def share(self, split: Split, parts: tuple[int, int] = (1, 1)) -> _Share:
        """Returns what the fullest tile has of a matmul whose summed axis, or columns, come one part after the other.

        The rows are on the tiles during all parts of the columns.
        """
        by_group, by_row, by_column, by_inner = split
        units, size = self.units, self.element_bytes
        each = -(-self.groups // by_group)
        rows = -(-self.rows // by_row)
        passes = -(-self.passes // (by_inner * parts[0]))
        inner, positions = -(-passes // self.positions), min(passes, self.positions)
        columns = -(-self.columns // (units.units * by_column * parts[1]))
        in_group = _in_group(min(self.inner, units.inner), units.inner, size)
        activations = each * _inputs(rows, positions, self.window) * inner * in_group * size
        weights = each * passes * in_group * columns * units.units * size
        sums = each * rows * columns * units.units
        outputs = -(-sums // by_inner)
        received = outputs * (by_inner - 1) * units.partial_bytes
        kept = sums * units.partial_bytes + (outputs * units.partial_bytes if parts[0] > 1 else 0)
        return _Share(self, split, parts, each, rows, inner, positions, columns,
                      activations, weights, outputs, received, kept)  # fmt: skip


class _Share(NamedTuple):
    """A part of a matmul on the fullest tile.

    Args:
        order: the matmul.
        split: tiles along groups, rows, columns and the summed axis.
        parts: parts of the summed axis and of the columns.
        each: groups; also rows, groups of the summed axis and of the columns, and positions.
        activations: bytes of the operand that moves past the units.
        weights: bytes of the operand that the units hold.
        outputs: sums that it adds up.
        received: bytes of other tiles' sums.
        kept: bytes of the sums that it computes.
    """

    order: _OperandOrder
    split: Split
    parts: tuple[int, int]
    each: int
    rows: int
    inner: int
    positions: int
    columns: int
    activations: int
    weights: int
    outputs: int
    received: int
    kept: int

    @property
    def temporary_bytes(self) -> int:
        """The temporary bytes of the tile."""
        return self.activations + self.weights + self.received + self.kept

    def fits(self, limit: float) -> bool:
        """Returns whether the temporary bytes are within a limit."""
        return self.temporary_bytes <= limit

    def part_counts(self) -> Iterator[list[tuple[int, int]]]:
        """Yields parts of the summed axis, then of the columns: with each, a part is smaller."""
        yield [(count, 1) for count in _part_counts(self.inner)]
        yield [(1, count) for count in _part_counts(self.columns)]

    def unit_cycles(self, chip: ChipSpec) -> int:
        """Returns the cycles in which the units compute all parts."""
        order = self.order
        cycles = self.each * vertex_cycles(chip, order.units, self.rows, self.inner, self.columns, self.positions)
        if order.inner <= MOST_CHANNELS:
            cycles = min(cycles, self._other_methods(chip, cycles))
        return math.prod(self.parts) * cycles

    def plan(self, chip: ChipSpec) -> MatmulPlan:
        """Returns the plan with this share of the tiles."""
        order, parts, activations, weights = self.order, self.parts, self.activations, self.weights
        units, size, serial = order.units, order.element_bytes, math.prod(parts)
        _, by_row, by_column, by_inner = self.split
        # Of what Poplar allocated for this matmul, each tile has its part already; poplin/ConvModel.cpp, lines 1048 to
        # 1069. Another order is made where the elements lie, before they go to several tiles; lines 1455 to 1485.
        arriving = activations - (activations // by_column if order.moving is OperandLayout.ALLOCATED else 0)
        arriving_weights = weights - (weights // by_row if order.held is OperandLayout.ALLOCATED else 0)
        reordered = parts[0] * (0 if order.moving else -(-activations // by_column))
        reordered += serial * (-(-weights // by_row) if order.rearranges else 0)
        per_cycle = chip.exchange_bytes_per_cycle
        shared = chip.exchange_bytes_per_cycle_shared_bus if by_column % 2 == 0 else per_cycle
        reduce = 0
        if by_inner > 1:
            reduce = library_vertices.reduce_partial_sums(chip, self.outputs, by_inner, units.partial_bytes, size)
        return MatmulPlan(
            split=self.split,
            serial=serial,
            between_parts=serial * self._between_parts(chip),
            exchange=-(-parts[0] * arriving // shared) + -(-(serial * arriving_weights + reordered) // per_cycle),
            rearrange=vertices.rearrange(chip, reordered, size, order.inner * order.columns),
            compute=self.unit_cycles(chip),
            reduce_exchange=serial * -(-self.received // per_cycle),
            reduce=serial * reduce,
            temporary_bytes=self.temporary_bytes,
            partial_bytes=self.kept,
            operand_bytes=parts[0] * activations + serial * weights,
            received_bytes=self.received,
            extents=(order.groups, order.rows, -(-order.columns // units.units), order.passes),
        )

    def _between_parts(self, chip: ChipSpec) -> int:
        """Returns the cycles of a part besides the matmul's own.

        Its operands are sliced where they lie. Its sums are added to the others', or its columns are written.

        Source: PopLibs `poplin/ConvModel.cpp`, lines 1660 to 1777 and 1973 to 1988.
        """
        order, parts, by_inner = self.order, self.parts, self.parts[0] > 1
        if parts == (1, 1):
            return 0
        summed, operand = order.groups * order.inner, vertices.float_of(order.element_bytes)
        cycles = sum(
            library_vertices.dynamic_slice(chip, -(-summed * extent // (chip.tiles * math.prod(parts))), operand)
            for extent in (order.columns * order.positions, order.rows)[: 1 + by_inner]
        )
        sums = vertices.float_of(order.units.partial_bytes)
        if by_inner:
            return cycles + vertices.elementwise(chip, self.outputs, "add", sums)
        return cycles + library_vertices.dynamic_slice(chip, self.outputs, operand)

    def _other_methods(self, chip: ChipSpec, amp: int) -> int:
        """Returns the cycles of an outer product or of SLIC vertices; of AMP if neither can compute it."""
        order = self.order
        _, _, by_column, by_inner = self.split
        if order.inner == 1 and order.positions == 1:
            columns = math.ceil(order.columns / by_column / chip.worker_contexts)
            dtype = vertices.float_of(order.element_bytes)
            return self.each * chip.worker_contexts * library_vertices.outer_product(self.rows, columns, columns, dtype)
        channels = max(order.inner, order.columns)
        if order.positions == 1 or order.groups == 1 or channels > 4 or order.element_bytes != 2 or by_inner > 1:
            return amp
        channels = 1 << (channels - 1).bit_length()
        together, side = 4 // channels, math.isqrt(order.positions)
        kernels = -(-side // 4) * -(-order.positions // side)
        half_sums = order.units.partial_bytes == 2
        chains = max(2, min(4, order.units.units // 4))
        one = library_vertices.slic(chip, self.rows, kernels, together, channels, half_sums, chains)
        return -(-self.each // together) * one
