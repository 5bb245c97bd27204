"""Computes a tile's cycles in element-wise operations, casts and copies, by PopLibs' published estimators.

Source: PopLibs at 7eac0f2; each function names its file and line. They estimate a simulator's measurements with average
    data. The six workers of a tile take turns: a tile needs six times the cycles of its busiest worker.
"""

from __future__ import annotations

import math

from tf_ipu_shim.cycle_model.popops_loops import Loop, loop_of
from tf_ipu_shim.machine.chips import ChipSpec

SUPERVISOR = 11
"""Cycles of the supervisor around element-wise work: popops/PerformanceEstimation.cpp:22."""
LOAD_AND_STORE = 4
"""Cycles of a loop besides the arithmetic, unary and scalar vertices: popopsCycleEstimators.cpp:149, 1506."""
LOAD_AND_STORE_BINARY = 5
"""The same of binary vertices: popopsCycleEstimators.cpp:78."""
_IN_ASSEMBLY = frozenset({"add", "subtract", "multiply"})
"""Operations on floats whose loops load and store during the arithmetic: popopsCycleEstimators.cpp:38."""
_FLOATS = frozenset({"float32", "float16"})
_BYTES = {"int64": 8, "uint64": 8, "float64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}
_GRADIENT_LOOPS = {"relu_grad": (3, 3), "sigmoid_grad": (3, 3), "tanh_grad": (3, 3), "gelu_grad": (10, 5),
                   "gelu_erf_grad": (30, 15), "swish_grad": (15, 9)}  # fmt: skip
"""Cycles for a vector of float32 and float16: popnn/PerformanceEstimation.hpp:60 to 90."""
_ACTIVATION_LOOPS = {"gelu": ((10, 10), (5, 5)), "swish": ((6, 11), (3, 5))}
"""Cycles for an element and for a vector, of float32 and float16: popnn/PerformanceEstimation.hpp:33 to 47."""
_LOAD_BYTES = 8


def bytes_of(dtype: str) -> int:
    """Returns the bytes of an element."""
    return _BYTES.get(dtype, 1 if dtype in ("bool", "int8", "uint8") else 4)


def float_of(element_bytes: int) -> str:
    """Returns the floating-point type of elements of a size."""
    return "float16" if element_bytes <= 2 else "float32"


def vector_width(dtype: str) -> int:
    """Returns the elements of this type that a worker processes per instruction."""
    return max(1, _LOAD_BYTES // bytes_of(dtype))


def elementwise(
    chip: ChipSpec, elements: int, operation: str = "add", dtype: str = "float32", form: str = "", row: int = 0
) -> int:
    """Returns the cycles of elementwise work on a tile.

    Args:
        form: `"scalar"` if an operand is one number. `"inner"` if an operand of `row` elements repeats. `"outer"` if
            each element of an operand meets `row` elements. `"expression"` if a vertex is generated, where `row` is
            its operations times its operands. Else empty.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> elementwise(CHIPS["gc200"], 1200, "add", "float32")  # 100 vectors of each of six workers
        1985
    """
    if not elements:
        return 0
    if form == "expression":
        return _expression(chip, elements, dtype, row)
    each = -(-elements // chip.worker_contexts)
    if operation in _OWN_FORMULAS:
        return _OWN_FORMULAS[operation](chip, each, elements, operation, "float16" if dtype == "float16" else dtype)
    unary = loop_of("unary", operation, dtype)
    if unary is not None:
        return _unary(chip, each, operation, *unary)
    if form == "scalar":
        return _scalar(chip, each, operation, dtype)
    whole = _binary(chip, each, operation, dtype)
    if form and row and dtype in _FLOATS:
        return min([whole, *_vector_broadcasts(chip, elements, operation, dtype, form, row)])
    return whole


def _expression(chip: ChipSpec, elements: int, dtype: str, loads: int) -> int:
    """Source: popops/ExpressionGenerator.cpp:320 to 334; more than a vector is shared by all workers."""
    width = vector_width(dtype)
    cycles = (elements // width + elements % width) * loads
    if elements <= width:
        return (13 + cycles) * chip.worker_contexts
    return math.ceil((20 + cycles) / chip.worker_contexts) * chip.worker_contexts


def _unary(chip: ChipSpec, each: int, operation: str, loop: Loop, dtype: str) -> int:
    """Source: popopsCycleEstimators.cpp:1497 to 1506, 1543 to 1557."""
    start = 33 if operation == "exponent" else 17
    if loop.elements and not loop.is_single:
        cycles = -(-each // loop.elements) * loop.cycles
    else:
        width = loop.elements or vector_width(dtype)
        cycles = (loop.cycles + LOAD_AND_STORE) * (each + width - 1) // width
    return chip.worker_contexts * (start + cycles) + 9 + SUPERVISOR


def _binary(chip: ChipSpec, each: int, operation: str, dtype: str) -> int:
    """Source: popopsCycleEstimators.cpp:63 to 84, 1615 to 1630."""
    loop, computed_in = loop_of("binary", operation, dtype) or (Loop(1, 0, False, 0), "float32")
    extra = 2 if operation in _IN_ASSEMBLY and computed_in in _FLOATS else LOAD_AND_STORE_BINARY
    start = 29 if computed_in == "float32" else 26
    return chip.worker_contexts * (start + _looped(loop, computed_in, each, extra)) + SUPERVISOR


def _scalar(chip: ChipSpec, each: int, operation: str, dtype: str) -> int:
    """Source: popopsCycleEstimators.cpp:126 to 178."""
    loop, computed_in = loop_of("scalar", operation, dtype) or (Loop(1, 0, False, 0), "float32")
    extra = 1 if operation in _IN_ASSEMBLY and computed_in in _FLOATS else LOAD_AND_STORE
    return chip.worker_contexts * (20 + _looped(loop, computed_in, each, extra)) + SUPERVISOR


def _looped(loop: Loop, dtype: str, each: int, extra: int) -> int:
    if loop.elements:
        return -(-each // loop.elements) * loop.cycles
    return -(-each // vector_width(dtype)) * (loop.cycles + extra)


def _vector_broadcasts(chip: ChipSpec, elements: int, operation: str, dtype: str, form: str, row: int) -> list[int]:
    """Returns the cycles of the vertices that repeat a vector of a row, or an element for each row."""
    workers, width = chip.worker_contexts, vector_width(dtype)
    row = min(row, elements)
    rows = -(-elements // row)
    if form == "outer":  # popopsCycleEstimators.cpp:232 to 260, aligned
        if operation not in _IN_ASSEMBLY:
            return []
        by_column = rows * (7 + -(-2 * -(-row // workers) // width))
        by_row = -(-rows // workers) * (7 + -(-2 * row // width))
        return [(15 + min(by_column, by_row)) * workers + SUPERVISOR]
    blocks = -(-rows // workers)
    if operation in ("add", "subtract"):  # popopsCycleEstimators.cpp:697 to 870, 1203 to 1212
        start, core = 13 + 6, (20 if dtype == "float32" else 22) + _add_core(dtype, row, blocks)
    elif operation == "multiply":  # popopsCycleEstimators.cpp:1004 to 1176, 1228 to 1235
        start, core = 13, (36 if dtype == "float32" else 45) + _multiply_core(dtype, row, blocks)
    elif operation == "divide":  # popopsCycleEstimators.cpp:873 to 1002, 1213 to 1217
        start, core = 18, (19 if dtype == "float32" else 24) + _divide_core(dtype, row, blocks)
    else:
        return []
    return [start + core * workers]


def _add_core(dtype: str, row: int, blocks: int) -> int:
    if dtype == "float32":
        return 7 + row * (8 + 2 * blocks)
    if row % 8 == 0 and row <= 2048:
        return 11 + 7 * (row // 8) if blocks == 1 else 12 + row // 8 * (15 + 2 * (blocks - 1))
    if row % 4 == 0 and blocks > 1 and row <= 2048:
        return 15 + row // 4 * (13 + 2 * (blocks // 2 - 1) + blocks % 2)
    return 11 + row * (5 + 9 * blocks)


def _multiply_core(dtype: str, row: int, blocks: int) -> int:
    if dtype == "float32":
        return 7 + row * (8 + 2 * blocks)
    if row % 4:
        return 8 + row * (5 + 9 * blocks)
    if row > 2044 or blocks < 2:
        return 13 + row // 4 * (7 + 2 * blocks)
    return 13 + row // 4 * (9 + blocks)


def _divide_core(dtype: str, row: int, blocks: int) -> int:
    start, first, others = (14, 13, 8) if dtype == "float16" else (10, 11, 6)
    return start + -(-row // 2) * (first + (blocks - 1) * others)


def _gradient(chip: ChipSpec, each: int, elements: int, operation: str, dtype: str) -> int:
    """Source: popnn/popnnCycleEstimators.cpp:154 to 208."""
    vectors = -(-(elements // vector_width(dtype)) // chip.worker_contexts)
    is_half = dtype == "float16"
    loops = 4 + max(0, vectors - 1) * _GRADIENT_LOOPS[operation][is_half] + 1 if vectors else 0
    return 9 + chip.worker_contexts * (20 + loops + (6 if is_half else 4))


def _activation(chip: ChipSpec, each: int, elements: int, operation: str, dtype: str) -> int:
    """Source: popnn/popnnCycleEstimators.cpp:78 to 140."""
    one, vector = _ACTIVATION_LOOPS[operation][dtype == "float16"]
    vectors = -(-(elements // vector_width(dtype)) // chip.worker_contexts)
    loops = 2 + one + (vectors - 1) * vector + 1 + one if vectors else 0
    return 9 + chip.worker_contexts * (20 + loops + (4 if dtype == "float16" else 3))


def _select(chip: ChipSpec, each: int, elements: int, operation: str, dtype: str) -> int:
    """Source: popopsCycleEstimators.cpp:1664 to 1692."""
    return chip.worker_contexts * (5 + 6 + 5 * each)


def _clamp(chip: ChipSpec, each: int, elements: int, operation: str, dtype: str) -> int:
    """Source: popopsCycleEstimators.cpp:1930 to 1966."""
    per_vector, width = (2, vector_width(dtype)) if dtype in _FLOATS else (7, 1)
    return chip.worker_contexts * (5 + 6 + per_vector * (each + width - 1) // width)


def _scaled_add(chip: ChipSpec, each: int, elements: int, operation: str, dtype: str) -> int:
    """Returns the cycles of adding a tensor times a number in place.

    Source: popops/PerformanceEstimation.cpp:473 to 627.
    """
    if dtype not in _FLOATS:
        return 67 + 26 * -(-elements // 3)
    vectors = elements // vector_width(dtype) // chip.worker_contexts
    remains = bool(elements % vector_width(dtype))
    loops = 6 + 3 * (vectors - 1) if vectors else 0
    return 50 + (13 if remains else 7) + chip.worker_contexts * (15 + loops + 4 + (8 if remains else 0))


_OWN_FORMULAS = {
    "select": _select,
    "clamp": _clamp,
    "scaled_add": _scaled_add,
    **dict.fromkeys(_GRADIENT_LOOPS, _gradient),
    **dict.fromkeys(_ACTIVATION_LOOPS, _activation),
}


def cast(chip: ChipSpec, elements: int, before: str, after: str) -> int:
    """Returns the cycles of a cast on a tile.

    Source: popops/PerformanceEstimation.cpp:206 to 365.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> cast(CHIPS["gc200"], 1200, "float32", "float16")
        846
    """
    if not elements:
        return 0
    each = -(-elements // chip.worker_contexts)
    return 12 + chip.worker_contexts * (_cast_worker(each, before, after) + 18)


def _cast_worker(each: int, before: str, after: str) -> int:
    if after in ("int64", "uint64"):
        return 3 + each * (5 if before in ("int32", "int8", "int16") else 4)
    if (before, after) == ("uint8", "float16"):
        return 4 + _in_fours(each, 14, 9) + (2, 12, 14, 22)[each % 4]
    if before == "float16" and after in ("uint8", "int8"):
        return 8 + _in_fours(each, 19, 16) + (2, 14, 21, 29)[each % 4]
    if before not in _FLOATS or after not in _FLOATS:
        return 19 + 2 * each
    width, cycles = (4, 2) if before == "float32" else (2, 1)
    return 19 + cycles * (each // width) + width // 2 + 2 * (each % width).bit_count()


def _in_fours(each: int, first: int, others: int) -> int:
    return first + (each // 4 - 1) * others if each >= 4 else 0


def copy(chip: ChipSpec, size: int) -> int:
    """Returns the cycles of a copy within a tile."""
    return math.ceil(size / chip.memcpy_bytes_per_cycle)


def rearrange(chip: ChipSpec, size: int, element_bytes: int, channels: int) -> int:
    """Returns the cycles of an element-by-element copy within a tile into another order.

    Args:
        channels: the channels of the operands together, which say how well elements are grouped.

    Source: poplin/ConvModel.cpp, lines 1306 to 1316 and 1464 to 1478.
    """
    grouped = channels % (2 if element_bytes >= 4 else 4) == 0
    return math.ceil(size * 5 / (4 if grouped else 3) / min(chip.memcpy_bytes_per_cycle, element_bytes))
