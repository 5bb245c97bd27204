"""Computes the cycles of the accumulating units (AMP), by PopLibs' published estimators."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from tf_ipu_shim.machine.chips import ChipSpec


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

    def least_cycles(self, chip: ChipSpec) -> tuple[int, int]:
        """Returns cycles that a pass takes at least, and each of its rows: see `vertex_cycles`."""
        return 25 + self.load + 18 * chip.worker_contexts, self.loop


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


def choices_of(chip: ChipSpec, element_bytes: int, partials_are_half: bool) -> list[Units]:
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
