"""Computes the cycles of one tile in a compute set, by PopLibs' planning formulas.

Source: docs/facts.md, section "Planning formulas". Where nothing is published the constant says that it is assumed.
"""

from __future__ import annotations

import math

from tf_ipu_shim.machine.chips import ChipSpec

WORKER_START = 20
"""Cycles of a worker before and after its loop, element-wise work and sums."""
SUPERVISOR = 11
"""Cycles of the supervisor around element-wise work."""
LOAD_AND_STORE = 2
"""Cycles a vector takes in element-wise work besides the arithmetic itself."""
REDUCE_CYCLES_PER_LOOP = 2
"""Assumed: two 64-bit loads for the eight float16 or four float32 values that a loop of a sum adds."""
TRANSCENDENTAL = 6
"""Assumed: cycles of the arithmetic unit for a vector of exponentials, roots, quotients and the like."""
RANDOM_CYCLES_PER_VECTOR = 4
"""Assumed: a vector of uniform random numbers, brought into its range."""
SLICE_ROW = 15
"""Assumed: cycles for each row that a gather or an update looks up."""
SORT_CYCLES_PER_COMPARISON = 8
"""Assumed: a comparison and exchange of a bitonic sort."""


def vector_width(chip: ChipSpec, element_bytes: int) -> int:
    """Returns the elements of this size that a worker processes per instruction."""
    if element_bytes <= 2:
        return chip.vector_width_fp16
    return chip.vector_width_fp32 if element_bytes == 4 else 1


def elementwise(chip: ChipSpec, elements: int, element_bytes: int, arithmetic: int = 1) -> int:
    """Returns the cycles of elementwise work on a tile.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> elementwise(CHIPS["gc200"], 1200, 4)  # 100 vectors of each of six workers
        1931
    """
    if not elements:
        return 0
    workers = chip.worker_contexts
    loops = math.ceil(elements / workers / vector_width(chip, element_bytes))
    return (WORKER_START + loops * (arithmetic + LOAD_AND_STORE)) * workers + SUPERVISOR


def cast(chip: ChipSpec, elements: int, from_bytes: int, to_bytes: int) -> int:
    """Returns the cycles of a cast on a tile."""
    if not elements:
        return 0
    each = elements / chip.worker_contexts
    loops = max(math.ceil(each / vector_width(chip, size)) for size in (from_bytes, to_bytes))
    return (loops + 26) * chip.worker_contexts


def reduce(chip: ChipSpec, outputs: int, partials: int, element_bytes: int) -> int:
    """Returns the cycles of a reduction on a tile."""
    if not outputs or not partials:
        return 0
    width = 8 if element_bytes <= 2 else 4
    workers = chip.worker_contexts
    if outputs < workers * width:  # what each number is made of is shared by the workers
        partials, outputs = math.ceil(partials * outputs / (workers * width)), workers * width
    loops = math.ceil(outputs / workers / width)
    return ((REDUCE_CYCLES_PER_LOOP * partials + 10) * loops + WORKER_START) * workers + 33


def copy(chip: ChipSpec, size: int) -> int:
    """Returns the cycles of a copy within a tile."""
    return math.ceil(size / chip.memcpy_bytes_per_cycle)


def rearrange(size: int, element_bytes: int) -> int:
    """Returns the cycles of an element-by-element copy within a tile into another order."""
    return math.ceil(size / min(8, element_bytes))


def look_up(chip: ChipSpec, rows: int, row_bytes: int) -> int:
    """Returns the cycles of reading or accumulating rows of a tile's part of a table."""
    return (rows * (SLICE_ROW + copy(chip, row_bytes)) + SUPERVISOR) if rows else 0


def random_numbers(chip: ChipSpec, elements: int, element_bytes: int) -> int:
    """Returns the cycles of generating random numbers on a tile."""
    return elementwise(chip, elements, element_bytes, RANDOM_CYCLES_PER_VECTOR)
