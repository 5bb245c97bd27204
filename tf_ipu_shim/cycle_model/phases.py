"""Splits a computation into the phases of one IPU: syncs, exchanges and compute sets."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.cycle_model import library_vertices, lookups, vertices
from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES, MatmulPlan, plan_matmul
from tf_ipu_shim.cycle_model.phase import Phase, Spread, compute_phase, equal_phase, exchange_phases, spread
from tf_ipu_shim.cycle_model.sizes import (
    CastSizes,
    ElementCount,
    ElementwiseSizes,
    FactorSizes,
    FeedSizes,
    FifoSizes,
    GatherSizes,
    HostSizes,
    MatmulSizes,
    NormSizes,
    RandomSizes,
    ReduceSizes,
    SolveSizes,
    SortSizes,
    UpdateSizes,
    UserOpSizes,
    WindowSizes,
)
from tf_ipu_shim.machine.chips import ChipSpec

HOST_SYNC_SECONDS = 0.363e-6
"""A sync with the host. Source: docs/reference/facts.md, section "Host traffic and syncs", 4095 of them."""


def phases_of(computation: Computation, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a computation on an IPU.

    Exchanges between IPUs and collectives are not among them: these depend on the links (see `timeline`).

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> add = Computation("elementwise", "add", ElementwiseSizes(1024, 2))
        >>> [phase.kind for phase in phases_of(add, CHIPS["gc200"])]
        ['compute']
    """
    return _phases(computation._replace(name=""), chip)


@functools.lru_cache(maxsize=16384)
def _phases(computation: Computation, chip: ChipSpec) -> tuple[Phase, ...]:
    return _OF_KIND[computation.kind](computation, computation.sizes, chip)


def matmul_plan(computation: Computation, chip: ChipSpec) -> MatmulPlan | None:
    """Returns the plan of a matmul; None for an empty one."""
    sizes = computation.sizes
    if not isinstance(sizes, MatmulSizes) or not sizes.products:
        return None
    *extents, window = sizes
    options = computation.planning
    return plan_matmul(chip, *extents, computation.element_bytes, *options, layouts=computation.layouts, window=window)


def _product_types(computation: Computation) -> str:
    """Returns a matmul's operand and partial types as in vertex names."""
    if computation.element_bytes > 2:
        return "float,float"
    operands = "half" if computation.element_bytes == 2 else "quarter"
    return f"{operands},{'half' if computation.planning.partials_are_float16 else 'float'}"


def _product(computation: Computation, sizes: MatmulSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    plan = matmul_plan(computation, chip)
    if plan is None:
        return ()
    tiles = plan.tiles
    cycles = plan.rearrange + plan.compute + plan.between_parts
    operands = Phase("exchange", "/PreArrange", plan.exchange, tiles, plan.exchange * tiles, plan.operand_bytes * tiles)
    vertex = f"poplin::ConvPartial{'1x1Out' if sizes.positions == 1 else 'nx1'}<{_product_types(computation)}>"
    total = round(cycles * tiles * plan.busy_share)
    units = Phase("compute", "/Convolve", cycles, tiles, total, 0, vertex, tiles, plan.temporary_bytes * tiles)
    phases = [Phase("sync", "", plan.serial * SYNC_CYCLES, chip.tiles), operands, units]
    if plan.reduce:
        received = exchange_phases("/Reduce", chip, plan.received_bytes, tiles)
        phases.extend(phase.repeated(plan.serial) for phase in received)
        total = round(plan.reduce * tiles * plan.busy_share)
        vertex = "popops::ReducePartialsEqualSize"
        phases.append(Phase("compute", "/Reduce", plan.reduce, tiles, total, vertex=vertex, vertices=tiles))
    return tuple(phases)


def _elementwise(computation: Computation, sizes: ElementwiseSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    elements = sizes.elements
    if not elements:
        return ()
    size = computation.element_bytes
    where = spread(chip, elements, size)
    cycles = vertices.elementwise(chip, where.most, sizes.operation, sizes.dtype, sizes.form, sizes.row)
    phases: list[Phase] = []
    if sizes.broadcast:  # each tile needs the part that its numbers meet
        phases.extend(exchange_phases("", chip, min(sizes.broadcast, where.most) * size, where.tiles))
    vertex = "popops::BinaryOp1D" if sizes.operands > 1 else "popops::UnaryOp1D"
    vertex = "popops::map" if sizes.form == "expression" else vertex
    phases.append(compute_phase(cycles, where, elements, vertex))
    return tuple(phases)


def _cast(computation: Computation, sizes: CastSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    elements, before, after = sizes
    if not elements:
        return ()
    where = spread(chip, elements, max(vertices.bytes_of(before), vertices.bytes_of(after)))
    cycles = vertices.cast(chip, where.most, before, after)
    return (compute_phase(cycles, where, elements, "popops::Cast1DSingleWorker"),)


def _reduce(computation: Computation, sizes: ReduceSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    operand_elements, result_elements, lengths, dtype, adds = sizes
    if not operand_elements or not result_elements:
        return ()
    size = computation.element_bytes
    dtype = dtype or vertices.float_of(size)
    where = _matmul_result_spread(computation, chip, operand_elements, spread(chip, operand_elements, size))
    # On each tile what is there first, then the tiles' sums of the same number.
    local = min(result_elements, reductions_in_stretch(where.most, lengths or (1, result_elements)))
    strided = not lengths or lengths[0] == 1
    cycles = library_vertices.reduce(chip, local, -(-where.most // local), dtype, strided, adds)
    phases = [equal_phase(cycles, where, "popops::Reduce", "/ReduceOnTile/InToIntermediateNoExchange/Reduce")]
    partials = -(-where.tiles * local // result_elements)
    if partials > 1:
        phases.extend(_reduce_partials(chip, result_elements, partials, size, dtype, adds))
    return tuple(phases)


def _matmul_result_spread(computation: Computation, chip: ChipSpec, consumed_tiles: int, where: Spread) -> Spread:
    """Returns the distribution of a matmul's result by its plan; small tensors use more tiles."""
    plan = matmul_plan(computation.product, chip) if computation.product is not None else None
    if plan is None:
        return where
    most = -(-consumed_tiles // min(consumed_tiles, math.prod(plan.split[:3])))
    return min(where, Spread(-(-consumed_tiles // most), most), key=_most)


def _most(where: Spread) -> int:
    return where.most


def _reduce_partials(
    chip: ChipSpec, result_elements: int, partials: int, size: int, dtype: str, adds: bool
) -> list[Phase]:
    """Reduces partial sums of tiles in one or two stages, whichever is faster.

    In two stages other tiles first add some parts each, about as many as there are such groups. So no tile receives all
    parts of its sums.
    """
    final = spread(chip, result_elements, size)
    at_once = _stage(chip, "/ReduceFinalStage", "IntermediateToOutput", partials, final, size, dtype, adds)
    groups = min(math.isqrt(partials), chip.tiles // final.tiles)
    if groups < 2:
        return at_once
    first = Spread(groups * final.tiles, final.most)
    staged = [
        *_stage(chip, "/ReduceStage1", "IntermediateToIntermediate", -(-partials // groups), first, size, dtype, adds),
        *_stage(chip, "/ReduceFinalStage", "IntermediateToOutput", groups, final, size, dtype, adds),
    ]
    return min(at_once, staged, key=_all_cycles)


def _stage(
    chip: ChipSpec, name: str, below: str, partials: int, where: Spread, size: int, dtype: str, adds: bool
) -> list[Phase]:
    """Returns the phases of one reduction stage."""
    cycles = library_vertices.reduce(chip, where.most, partials, dtype, adds=adds)
    summed = equal_phase(cycles, where, "popops::Reduce", f"{name}/{below}/Reduce")
    return [*exchange_phases(name, chip, where.most * partials * size, where.tiles), summed]


def _all_cycles(phases: Sequence[Phase]) -> int:
    return sum(phase.cycles for phase in phases)


def reductions_in_stretch(stretch: int, lengths: Sequence[int]) -> int:
    """Returns the most distinct reductions that a contiguous stretch of elements touches.

    Example:
        >>> reductions_in_stretch(100, [256])  # of one row, which is all there is
        1
        >>> reductions_in_stretch(100, [250, 8])  # the end of a row and the beginning of the next
        2
        >>> reductions_in_stretch(100, [1, 256, 8])  # columns are summed
        100
    """
    return _reductions_in_stretch(stretch, tuple(lengths), remaining=False, aligned=True)


def _reductions_in_stretch(stretch: int, lengths: tuple[int, ...], remaining: bool, aligned: bool) -> int:
    if stretch == 1 or not lengths:
        return 1
    length = lengths[0]
    aligned = aligned and (stretch % length == 0 or length % stretch == 0)
    # One that begins anywhere may have the end of an axis, and the beginning of the next.
    blocks = -(-stretch // length) if aligned else (stretch - 2) // length + 2
    above = _reductions_in_stretch(blocks, lengths[1:], not remaining, aligned)
    return min(stretch, min(stretch, length) * above) if remaining else above


def _window(computation: Computation, sizes: WindowSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    result_elements, window, kind, channels = sizes
    if not result_elements:
        return ()
    size = computation.element_bytes
    where = spread(chip, result_elements, size)
    channels = min(channels, where.most)
    cycles = library_vertices.pooling(chip, -(-where.most // channels), channels, window, vertices.float_of(size), kind)
    # The windows' edges come from other tiles.
    phases = exchange_phases("", chip, where.most * size * min(window, 2), where.tiles)
    vertex = {"max": "MaxPooling", "sum": "SumPooling", "max_grad": "MaxPoolingGrad"}[kind]
    return (*phases, compute_phase(cycles, where, result_elements, f"popnn::{vertex}"))


def _norm(computation: Computation, sizes: NormSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a batch normalisation as `popnn` builds it, in one compute set."""
    elements, channels, kind, run = sizes
    if not elements or not channels:
        return ()
    dtype = vertices.float_of(computation.element_bytes)
    sums, passes = _NORM_PARTS[kind]
    total = ReduceSizes(elements, channels, (run, channels, max(1, elements // channels // run)), dtype)
    form, row = ("inner", channels) if run == 1 else ("outer", run)
    one_pass = ElementwiseSizes(elements, 2, "multiply", dtype, channels, form, row)
    inner = [*sums * _reduce(computation, total, chip), *passes * _elementwise(computation, one_pass, chip)]
    extra = library_vertices.inverse_deviations(spread(chip, channels, 4).most) if kind == "training" else 0
    where = spread(chip, elements, computation.element_bytes)
    merged = {name: sum(phase.cycles for phase in inner if phase.kind == name) for name in ("sync", "exchange")}
    moved = sum(phase.bytes for phase in inner)
    cycles = extra + sum(phase.cycles for phase in inner if phase.kind == "compute")
    return (
        Phase("sync", "", merged["sync"], chip.tiles),
        Phase("exchange", "", merged["exchange"], where.tiles, merged["exchange"] * where.tiles, moved),
        compute_phase(cycles, where, elements, "popops::BroadcastVectorInner1D"),
    )


_NORM_PARTS = {"inference": (0, 2), "training": (2, 4), "gradient": (2, 5)}
"""Reductions and passes over all elements: popnn/BatchNorm.cpp and popnn/NormsInternal.cpp."""


def _copy(computation: Computation, sizes: ElementCount, chip: ChipSpec) -> tuple[Phase, ...]:
    (elements,) = sizes
    if not elements:
        return ()
    where = spread(chip, elements, computation.element_bytes)
    cycles = vertices.copy(chip, where.most * computation.element_bytes)
    return (compute_phase(cycles, where, elements, "poplar_rt::Copy"),)


def _fifo(computation: Computation, sizes: FifoSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the copies of tensors into a FIFO and out of it, each tensor as large as the average.

    Several slots are a ring: a slice is updated and another one read, at places that a counter says.
    """
    elements, tensors, slots = sizes
    if not elements or not tensors or not slots:
        return ()
    each = -(-elements // tensors)
    if slots == 1:
        return tuple(phase.repeated(2 * tensors) for phase in _copy(computation, ElementCount(each), chip))
    written = lookups.update(computation, UpdateSizes(each, slots * each, is_slice=True), chip)
    read = lookups.gather(computation, GatherSizes(each, slots * each, is_slice=True), chip)
    counter = ElementwiseSizes(1, 2, "add", "int32", form="scalar")
    counted = _elementwise(computation, counter, chip)
    return (*(phase.repeated(tensors) for phase in (*written, *read)), *counted)


def _random(computation: Computation, sizes: RandomSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    elements, distribution, dtype = sizes
    if not elements:
        return ()
    where = spread(chip, elements, computation.element_bytes)
    dtype = dtype or vertices.float_of(computation.element_bytes)
    cycles = library_vertices.random_numbers(chip, where.most, dtype, distribution)
    vertex = "".join(word.title() for word in distribution.split("_"))
    return (compute_phase(cycles, where, elements, f"poprand::{vertex}"),)


def _sort(computation: Computation, sizes: SortSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the rounds of a bitonic sort.

    If few elements of a row are wanted, sorted stretches of at least so many are merged, and half of them dropped.

    Source: PopLibs `popops/TopK.hpp`, whose functions sort, too.
    """
    elements, length, dtype, has_values, kept = sizes
    if not elements:
        return ()
    stretch = 1 << (min(kept or length, length) - 1).bit_length()
    below = [1 << round_ for round_ in range(stretch.bit_length() - 1)]
    rounds = [(elements, distance) for stage in range(len(below)) for distance in below[: stage + 1]]
    left = -(-length // stretch)
    while left > 1:
        rounds.append((elements // length * left * stretch, stretch))
        left = -(-left // 2)
        rounds.extend((elements // length * left * stretch, distance) for distance in below)
    return tuple(phase for live, distance in rounds for phase in _sort_round(computation, sizes, chip, live, distance))


def _sort_round(
    computation: Computation, sizes: SortSizes, chip: ChipSpec, elements: int, distance: int
) -> list[Phase]:
    """Returns the phases in which elements at a distance are compared: those of a tile need no exchange."""
    where = spread(chip, elements, computation.element_bytes)
    pairs = -(-where.most // 2)
    cycles = library_vertices.compare_and_swap(chip, pairs, min(distance, where.most), sizes.dtype, sizes.has_values)
    received = where.most * computation.element_bytes * (2 if sizes.has_values else 1)
    moved = exchange_phases("", chip, received, where.tiles) if distance >= where.most else []
    return [*moved, compute_phase(cycles, where, elements, "popops::CompareAndSwapAtDistance")]


SOLVE_BLOCK, FACTOR_BLOCK = 64, 8
"""Rows of a block that is solved, or factorised, directly: poplin/TriangularSolve.hpp and poplin/Cholesky.cpp:37."""


def _solve(computation: Computation, sizes: SolveSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a triangular solve: quadrants, then row by row.

    Source: PopLibs `poplin/TriangularSolve.hpp`. Rows follow one another; solves of quadrants, too.
    """
    matrices, side, columns, block = sizes
    if not matrices * side * columns:
        return ()
    phases: list[Phase] = []
    times = 1
    while side > (block or SOLVE_BLOCK):
        halves = min(2, columns)
        side, columns = -(-side // 2), -(-columns // 2)
        phases.extend(_subtracted(computation, MatmulSizes(matrices, side, side, columns), chip, times * halves))
        times *= 2 * halves
    if columns == 1:
        cycles = library_vertices.triangular_solve(chip, side, vertices.float_of(computation.element_bytes))
        solved = equal_phase(cycles, Spread(min(matrices, chip.tiles), 1), "poplin::TriangularSolve")
        return (*phases, solved.repeated(times * -(-matrices // chip.tiles)))
    rows = times * (side - 1)
    phases.extend(_subtracted(computation, MatmulSizes(matrices, 1, -(-side // 2), columns), chip, rows))
    written = exchange_phases("", chip, columns * computation.element_bytes, matrices)
    return (*phases, *(phase.repeated(rows) for phase in written))


def _factor(computation: Computation, sizes: FactorSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the phases of a Cholesky factorisation: block by block, each on one tile.

    Source: PopLibs `poplin/Cholesky.hpp`.
    """
    matrices, side = sizes
    where, dtype = Spread(min(matrices, chip.tiles), 1), vertices.float_of(computation.element_bytes)
    phases: list[Phase] = []
    while matrices and side:
        block = min(side, FACTOR_BLOCK)
        phases.append(equal_phase(library_vertices.cholesky(block, dtype), where, "poplin::Cholesky"))
        side -= block
        if side:
            inverse = library_vertices.triangular_inverse(block, dtype)
            phases.append(equal_phase(inverse, where, "poplin::TriangularInverseWithTranspose"))
            scaled = MatmulSizes(matrices, side, block, block)
            phases.extend(_product(computation._replace(kind="product", sizes=scaled), scaled, chip))
            phases.extend(_subtracted(computation, MatmulSizes(matrices, side, block, side), chip, 1))
    return tuple(phases)


def _subtracted(computation: Computation, sizes: MatmulSizes, chip: ChipSpec, times: int) -> list[Phase]:
    """Returns the phases of products that are subtracted from something."""
    dtype = vertices.float_of(computation.element_bytes)
    minus = ElementwiseSizes(sizes.groups * sizes.rows * sizes.columns, 2, "subtract", dtype)
    product = _product(computation._replace(kind="product", sizes=sizes), sizes, chip)
    return [phase.repeated(times) for phase in (*product, *_elementwise(computation, minus, chip))]


def _other(computation: Computation, sizes: ElementCount, chip: ChipSpec) -> tuple[Phase, ...]:
    (elements,) = sizes
    if not elements:
        return ()
    where = spread(chip, elements, computation.element_bytes)
    dtype = vertices.float_of(computation.element_bytes)
    return (compute_phase(vertices.elementwise(chip, where.most, "exponent", dtype), where, elements, "other"),)


def host_cycles(chip: ChipSpec, size: int) -> int:
    """Returns the cycles of a stream copy with its sync; a negative size is a copy to the host."""
    if not size:
        return 0
    return chip.cycles(HOST_SYNC_SECONDS + abs(size) / chip.host_bytes_per_second)


def _host(computation: Computation, sizes: HostSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    (size,) = sizes
    if not size:
        return ()
    cycles = host_cycles(chip, size)
    where = spread(chip, abs(size), 1)
    return (Phase("host", "", cycles, where.tiles, cycles * where.tiles, abs(size)),)


def _feed(computation: Computation, sizes: FeedSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the copy between I/O tiles and compute tiles; the I/O tiles are the busiest."""
    size, tiles = sizes
    host = _host(computation, HostSizes(size), chip)
    if not host:
        return ()
    name = "/infeed/inter-tileset-copy" if size > 0 else "/inter-tileset-copy"
    exchange = exchange_phases(name, chip, -(-abs(size) // tiles), tiles, abs(size))
    return (*host, *exchange) if size > 0 else (*exchange, *host)


def _user_op(computation: Computation, sizes: UserOpSizes, chip: ChipSpec) -> tuple[Phase, ...]:
    """Returns the compute sets and exchanges of a user's Poplar op, under their names."""
    phases: list[Phase] = []
    for step in sizes.steps:
        if step.kind == "exchange":
            sync, exchange = exchange_phases(step.name, chip, step.received, step.tiles, step.bytes)
            phases.append(sync._replace(name=step.name, cycles=round(sync.cycles * step.times)))
            cycles = round(exchange.cycles * step.times)
            phases.append(exchange._replace(cycles=cycles, total=cycles * step.tiles))
        else:
            cycles, total = round(step.cycles * step.times), round(step.total * step.times)
            phases.append(
                Phase("compute", step.name, cycles, step.tiles, total, vertex=step.vertex, vertices=step.vertices)
            )
    return tuple(phases)


_OF_KIND: dict[str, Callable[[Computation, Any, ChipSpec], tuple[Phase, ...]]] = {
    "product": _product,
    "elementwise": _elementwise,
    "cast": _cast,
    "reduce": _reduce,
    "window": _window,
    "gather": lookups.gather,
    "update": lookups.update,
    "fifo": _fifo,
    "norm": _norm,
    "copy": _copy,
    "random": _random,
    "sort": _sort,
    "solve": _solve,
    "factor": _factor,
    "other": _other,
    "host": _host,
    "feed": _feed,
    "remote": _host,
    "user_op": _user_op,
}
