"""Computes a tile's cycles in PopLibs' reductions, slices, sorts, solvers and the like, by its estimators.

Reductions, slices, random numbers, pooling, sorting, outer products and SLIC convolutions. Source: PopLibs at 7eac0f2;
each function names its file and line. `*_worker` is the estimate of one vertex, which one worker runs.
"""

from __future__ import annotations

import math

from tf_ipu_shim.cycle_model.vertices import SUPERVISOR, bytes_of, vector_width
from tf_ipu_shim.machine.chips import ChipSpec

_RANDOM_LOOPS = {"uniform": (32, 16), "normal": (2, 4)}
"""Random numbers that four cycles produce, of float32 and float16: poprandCycleEstimators.cpp:34 and 81.

The estimator counts a uniform number as an eighth of what its loop of four cycles for a vector suggests.
"""
TRUNCATED_NORMAL_ROUNDS = 3
"""Draws of a number beyond two standard deviations: poprand/RandomGen.cpp:465."""
_SWAP_LOOPS = {
    ("float32", False): (13, 13, 13, 3, 17, 40),
    ("int32", False): (12, 12, 17, 3, 22, 42),
    ("float32", True): (8, 11, 11, 11, 4, 23),
    ("int32", True): (17, 17, 22, 5, 30, 43),
}
"""Cycles of the first comparison, of others, of a run, of the first run, of a list, of the vertex.

Source: popopsCycleEstimators.cpp:2531 to 2587.
"""


def _accumulator_width(dtype: str) -> int:
    return {"float16": 8, "float32": 4}.get(dtype, 1)


def _sum_width(dtype: str, adds: bool) -> int:
    """Returns the elements that a reduction combines at a time: only sums have accumulators."""
    return _accumulator_width(dtype) if adds else vector_width(dtype)


def _elements_a_cycle(dtype: str, adds: bool, is_interleaved: bool) -> int:
    return min(_sum_width(dtype, adds), vector_width(dtype) * (2 if is_interleaved else 1))


def strided_reduce_worker(outputs: int, partials: int, dtype: str, adds: bool = True, interleaved: bool = False) -> int:
    """Returns the cycles of adding rows: partials of one result are a stride apart.

    Source: reduction/CycleEstimationFunctions.cpp:212 to 290.
    """
    width = math.gcd(_elements_a_cycle(dtype, adds, interleaved), outputs)
    store = 8 if dtype == "float16" else 5 if adds else 4
    return 16 + -(-outputs // width) * (3 + store + 3 + partials - 1)


def continuous_reduce_worker(outputs: int, partials: int, dtype: str, interleaved: bool = False) -> int:
    """Returns the cycles of adding stretches: partials of one result are neighbours.

    Source: reduction/CycleEstimationFunctions.cpp:333 to 360.
    """
    width = _elements_a_cycle(dtype, True, interleaved)
    return 17 + outputs * (partials // width + 12) + (2 if partials % 2 else 0)


def single_reduce_worker(partials: int, dtype: str, adds: bool = True, interleaved: bool = False) -> int:
    """Returns the cycles of adding one stretch.

    Source: reduction/CycleEstimationFunctions.cpp:292 to 331.
    """
    width = _sum_width(dtype, adds)
    each = width // _elements_a_cycle(dtype, adds, interleaved)
    return 17 + each * partials // width + partials % width + (0 if dtype == "float32" else 5)


def regions_reduce_worker(outputs: int, partials: int, dtype: str, adds: bool = True, regions: int = 1) -> int:
    """Returns the cycles of adding partials in irregular positions.

    Source: reduction/CycleEstimationFunctions.cpp:64 to 183.
    """
    width = _sum_width(dtype, adds)
    load = (4 if adds else 2) + max(1, width // vector_width(dtype)) + 3
    vectors, remains = divmod(outputs, width)
    cycles = 33 + 24 + 2 * (width.bit_length() - 1)
    store = 2 * min(width, vector_width(dtype)) + adds
    cycles += vectors * ((6 if adds else 4) + store + 10 * regions + partials * load)
    for bit in range(width.bit_length() - 1):
        if remains >> bit & 1:
            part = 2 * min(1 << bit, vector_width(dtype)) + adds
            cycles += (4 if adds else 2) + part + 10 * regions
            cycles += partials * (5 + max(1, (1 << bit) // vector_width(dtype)))
    return cycles


def reduce(
    chip: ChipSpec, outputs: int, partials: int, dtype: str = "float32", strided: bool = True, adds: bool = True
) -> int:
    """Returns the cycles of a reduction on a tile, by the fastest vertex for its layout.

    The workers share the results; if these are few, also the partials of each, and then sum their results.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> reduce(CHIPS["gc200"], 96, 64)  # eight vectors of two for each worker
        3648
    """
    if not outputs or not partials:
        return 0
    workers = chip.worker_contexts
    grain = vector_width(dtype) if strided else 1
    vectors = -(-outputs // grain)
    shares = max(1, min(workers // vectors, partials // 2)) if vectors < workers else 1
    each = min(outputs, -(-vectors // workers) * grain)
    cycles = workers * _worker(each, -(-partials // shares), dtype, strided, adds)
    if shares > 1:
        cycles += workers * _worker(each, shares, dtype, strided, adds)
    return cycles


def _worker(outputs: int, partials: int, dtype: str, strided: bool, adds: bool) -> int:
    if dtype not in ("float32", "float16"):
        return regions_reduce_worker(outputs, partials, dtype, adds)
    if not strided:
        stretches = continuous_reduce_worker(outputs, partials, dtype)
        return min(stretches, single_reduce_worker(partials, dtype)) if outputs == 1 else stretches
    if outputs % vector_width(dtype):
        return regions_reduce_worker(outputs, partials, dtype, adds)
    return strided_reduce_worker(outputs, partials, dtype, adds)


def reduce_partial_sums(chip: ChipSpec, outputs: int, partials: int, partial_bytes: int, result_bytes: int) -> int:
    """Returns the cycles of adding a matmul's partial sums on a tile.

    Source: poplin/PerformanceEstimation.hpp:1560 to 1600.
    """
    if not outputs or not partials:
        return 0
    workers, width = chip.worker_contexts, 4 if partial_bytes == 4 else 8
    loops = math.ceil(math.ceil(outputs / width) / workers)
    overhead = (8 if partial_bytes == 4 else 10) - (result_bytes != 4)
    return ((2 * partials + overhead) * loops + 20) * workers + 33


def multi_slice(
    chip: ChipSpec, offsets: int, row: int, dtype: str = "float32", in_range: int | None = None, writes: bool = False
) -> int:
    """Returns the cycles of looking rows up in a tile's part of a table, or of replacing them.

    Args:
        row: elements of a row.
        in_range: how many of the offsets one worker finds on the tile; all, as the published estimate assumes, if None.

    Source: popops/PerformanceEstimation.cpp:49 to 122.
    """
    if not offsets:
        return 0
    size = bytes_of(dtype)
    width, each = {1: (4, 3), 2: (2, 2)}.get(size, (max(1, 8 // size), 2))
    found = offsets if in_range is None else in_range
    core = found * (19 + -(-row // width) * each) + (offsets - found) * 8
    return ((29 if writes else 30) + core) * chip.worker_contexts


def multi_update_add(
    chip: ChipSpec, offsets: int, row: int, dtype: str = "float32", in_range: int | None = None
) -> int:
    """Returns the cycles of adding scaled rows to a tile's part of a table.

    Source: popops/PerformanceEstimation.cpp:124 to 204.
    """
    if not offsets:
        return 0
    size = bytes_of(dtype)
    is_word = size == 4
    found = offsets if in_range is None else in_range
    is_short = row in (2, 4) if is_word else size == 2 and row == 4
    start = 3 + (29 if is_word else 30) - is_short + 4 + 2 * is_word
    atoms = -(-row * size // 4)
    each = (11 if is_word else 13) + 3 * (atoms - 1)
    if is_short:
        each = (8 if row == 2 else 16) if is_word else 9
    return (start + each * found + 5 * (offsets - found)) * chip.worker_contexts


def dynamic_slice(chip: ChipSpec, elements: int, dtype: str = "float32", rows: int = 1) -> int:
    """Returns the cycles of copying `rows` times `elements` of a tile's part of a tensor, or of replacing them.

    Source: popopsCycleEstimators.cpp:1755 to 1783.
    """
    if not elements:
        return 0
    size = bytes_of(dtype)
    each = -(-elements * (2 if size == 8 else 1) // chip.worker_contexts)
    vectors = each // {1: 4, 2: 4}.get(size, 2)
    start, row = (76, 72) if size == 1 else (39, 24)
    return SUPERVISOR + 14 + (start + (row + 2 * vectors) * rows) * chip.worker_contexts


def random_numbers(chip: ChipSpec, elements: int, dtype: str = "float32", distribution: str = "uniform") -> int:
    """Returns the cycles of drawing random numbers on a tile.

    Source: poprandCycleEstimators.cpp:11 to 142.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> random_numbers(CHIPS["gc200"], 6000, "float32", "normal")
        12138
    """
    if not elements:
        return 0
    workers, is_half = chip.worker_contexts, bytes_of(dtype) == 2
    if dtype not in ("float32", "float16", "bfloat16"):
        return 4 + 22 * workers + 6 * (elements // 2) + elements % 2 * 2
    width = 4 if is_half else 2
    if distribution == "truncated_normal":
        rounds = TRUNCATED_NORMAL_ROUNDS
        start, loop = (28, 12 * rounds + 5) if is_half else (26, 11 * rounds + 5)
        rest = (12 * rounds + 10 if is_half else 13 * rounds + 2) if elements % width else 0
        return 4 + start * workers + loop * (elements + width - 1) // width + rest
    if distribution == "dropout":
        rest = (9 if is_half else 1) if elements % width else 0
        return 6 + 24 * workers + 2 * (elements + width - 1) // width + rest
    width = _RANDOM_LOOPS[distribution][is_half]
    rest = (12 if is_half else 4 if distribution == "uniform" else 3) if elements % width else 0
    return 4 + (24 if is_half else 22) * workers + 4 * (elements + width - 1) // width + rest


def pooling(
    chip: ChipSpec, positions: int, channels: int, window: int, dtype: str = "float32", kind: str = "max"
) -> int:
    """Returns the cycles of pooling on a tile whose results are `positions` of `channels` each.

    Args:
        kind: `"max"`, `"sum"` or `"max_grad"`.

    Source: popnn/PerformanceEstimation.hpp:127 to 245. Each worker has a stretch of positions, and one entry of its
    work list for each position of the window.
    """
    if not positions or not channels:
        return 0
    each = -(-positions // chip.worker_contexts)
    vectors = -(-channels // vector_width(dtype))
    loop = {"max": 4 + 3 * each, "sum": 5 + 3 * each, "max_grad": 7 + 5 * each}[kind]
    initial = 4 + positions * vectors // chip.worker_contexts
    start = 17 + 2 + initial + 6 + 2 + 2 + (1 if kind == "max" else 2) + (10 if kind == "max_grad" else 0) + 10
    entry = 20 + 1 + vectors * (3 + loop) + 1 + 3
    return 13 + chip.worker_contexts * (start + 13 + window * entry + 2 + 1)


def compare_and_swap(
    chip: ChipSpec, pairs: int, distance: int, dtype: str = "float32", has_values: bool = False
) -> int:
    """Returns the cycles of one round of a bitonic sort on a tile: comparing pairs `distance` elements apart.

    Source: popopsCycleEstimators.cpp:2497 to 2633.
    """
    if not pairs:
        return 0
    key = "float32" if dtype in ("float32", "float16", "bfloat16", "float64") else "int32"
    first, other, run, first_run, entry, vertex = _SWAP_LOOPS[key, has_values]
    each = -(-pairs // chip.worker_contexts)
    runs = 1 + -(-(each - min(each, distance)) // max(1, distance))
    return 19 + chip.worker_contexts * (vertex + entry + first + (each - 1) * other + first_run + (runs - 1) * run)


def heap_sort(elements: int, has_values: bool = False) -> int:
    """Returns the cycles of sorting one row on one worker.

    Source: popopsCycleEstimators.cpp:2288 to 2304.
    """
    if elements < 1:
        return 0
    return (16 if has_values else 8) * (19 * elements * (elements.bit_length() - 1) + 6 * elements + 2)


def triangular_solve(chip: ChipSpec, side: int, dtype: str = "float32", lower: bool = True) -> int:
    """Returns the cycles of solving for one column on a tile; all workers share it if four divide the rows.

    Source: poplinCycleEstimators.cpp:773 to 841.
    """
    if not side:
        return 0
    is_half = dtype == "float16"
    if side % 4:
        square, linear, constant = _SOLVE_POLYNOMIALS[is_half, lower]
        return math.floor(square * side * side + linear * side + constant)
    calls, workers = side // 4, chip.worker_contexts
    average = (side - 4) / (workers * (2 if is_half else 1)) / 2
    loop, outside = _SHARED_SOLVE[is_half, lower]
    return int((loop * average + outside) * calls * workers) + (9 if lower else 6) * calls + (21 if lower else 42)


_SOLVE_POLYNOMIALS = {(False, True): (1.5, 180, -126), (False, False): (6.75, 163.5, 54),
                      (True, True): (0.75, 318, -150), (True, False): (135 / 16, 272.25, 12)}  # fmt: skip
_SHARED_SOLVE = {(False, True): (11, 74), (False, False): (10, 99), (True, True): (17, 112), (True, False): (17, 145)}


def cholesky(side: int, dtype: str = "float32") -> int:
    """Returns the cycles of factorising a block on one worker.

    Source: poplinCycleEstimators.cpp:38 to 60.
    """
    if dtype == "float16":
        return side**3 // 2 + 795 * side**2 // 4 + 191 * side // 2 + 426
    return side**3 + 102 * side**2 + 101 * side + 102


def triangular_inverse(side: int, dtype: str = "float32") -> int:
    """Returns the cycles of inverting a triangular block on one worker.

    Source: poplinCycleEstimators.cpp:15 to 36.
    """
    if dtype == "float16":
        return 7 * side**3 + 123 * side**2 + 269 * side - 24
    return 6 * side**3 + 51 * side**2 + 213 * side + 12


def inverse_deviations(elements: int) -> int:
    """Returns the cycles of inverse standard deviations from means and powers, on one worker.

    Source: poplinCycleEstimators.cpp:608 to 634.
    """
    return 6 + 4 + 5 * -(-elements // 2)


def outer_product(rows: int, channels: int, group: int, dtype: str = "float32") -> int:
    """Returns the cycles of an outer product on one worker: each of `rows` elements times each of `channels`.

    Args:
        group: channels that are neighbours in the result.

    Source: poplin/PerformanceEstimation.hpp:1516 to 1558.
    """
    groups, is_half = channels // group, bytes_of(dtype) == 2
    unrolled, width = (12, 4) if is_half else (6, 2)
    if group >= unrolled and group % width == 0 and group // width + 1 < 512:
        loop = 6 + (group - unrolled) // width
    else:
        loop = 10 + (group * 5 // 2 if is_half else group * 2)
    return 25 + groups * ((10 if is_half else 11) + rows * loop)


def slic(
    chip: ChipSpec, positions: int, kernels: int, groups: int, channels: int, half_sums: bool, chains: int = 4
) -> int:
    """Returns the cycles of a convolution of float16 by a window of four positions on a tile (SLIC).

    Args:
        positions: the positions of the result, of all workers.
        kernels: windows of four that the kernel consists of.
        groups: convolution groups that are computed at a time: 1, 2, 4, 8 or 16.
        channels: the channels of a group.
        chains: the number of accumulating chains in use, 2 or 4.

    Source: poplin/PerformanceEstimation.hpp:1085 to 1364.
    """
    workers, strides = chip.worker_contexts, max(1, groups // 4)
    eight = chains == 2 and half_sums
    load = 18 if channels == 4 else 21 + (10 if groups != 2 else 12) * workers + (workers if groups > 4 else 0)
    load += 16
    if groups <= 4:
        kernel = load + (0 if eight else 4) + 2 + 14
        group_body = 12 if eight else 15
    else:
        kernel = (load + 21) * strides + 6 * (strides - 1) + 1 + 15
        group_body = 23 if not eight else 20
    each = -(-positions // workers)
    fixed = 25 if eight else 28
    inner = _slic_worker(each, groups, chains, half_sums, eight, zeroes=False) * workers * strides
    first = _slic_worker(each, groups, chains, half_sums, eight, zeroes=True) * workers
    first += 2 + 2 * each * workers if eight else 0
    supervisor = fixed + group_body + 1 + kernel * kernels + 6 * (kernels - 1) + 1
    return supervisor + first + (kernels - 1) * inner


def _slic_worker(each: int, groups: int, chains: int, half_sums: bool, eight: bool, zeroes: bool) -> int:
    start = 17 + (0 if not eight else 0) + (4 if groups > 4 else 0)
    row = 15 + max(0, each - 5) + (3 if eight and not zeroes else 0) - (0 if half_sums else 1)
    work = (9 if eight else 10) + zeroes + (0 if half_sums else 3) + row * (1 if chains == 4 else 2)
    return start + work + (2 if eight else 0)
