"""Reads the cycles of the inner loops of PopLibs' element-wise vertices, by operation and type.

Source: PopLibs `lib/popops/popopsCycleEstimators.hpp` at 7eac0f2. A row of `popops_loops.csv` has an operation, the
line of its first entry there, and an entry for each type. An entry is a letter (see `_DTYPES`) and the cycles of a
loop. `v` means that a loop computes a 64-bit vector, `/N` that it computes N elements; otherwise it computes one. All
are estimates for average data.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tf_ipu_shim import data_files

_DTYPES = {
    "f": "float32", "h": "float16", "i": "int32", "u": "uint32", "l": "int64", "m": "uint64", "s": "int16",
    "t": "uint16", "b": "bool",
}  # fmt: skip
_SIMILAR = {
    "float64": "float32", "complex64": "float32", "complex128": "float32", "bfloat16": "float16", "float8": "float16",
    "int16": "int32", "uint16": "uint32", "int8": "int32", "uint8": "uint32", "int4": "int32", "uint4": "uint32",
    "uint32": "int32", "uint64": "int64", "int64": "int32", "int32": "float32", "float16": "float32", "bool": "int32",
}  # fmt: skip
"""The type whose vertex a type uses, or resembles, if PopLibs has none for it."""


class Loop(NamedTuple):
    """The inner loop of a vertex.

    Args:
        cycles: the cycles of an iteration, without loads, stores and the branch if `elements` is 0 or `is_single`.
        elements: the elements that an iteration computes; 0 for a 64-bit vector.
        is_single: whether an iteration computes one element, and loads and stores are added.
        line: the line of the entry's operation in the source.
    """

    cycles: int
    elements: int
    is_single: bool
    line: int


@functools.cache
def loops_of(form: str) -> dict[tuple[str, str], Loop]:
    """Returns the loops of `"unary"`, `"binary"` or `"scalar"` vertices by operation and type.

    Example:
        >>> loops_of("binary")["divide", "float32"][:2]
        (10, 2)
    """
    found = {}
    for row in data_files.rows(__file__, "popops_loops.csv"):
        for entry in row["loops"].split() if row["form"] == form else ():
            cycles, _, elements = entry[1:].removesuffix("v").partition("/")
            single = not elements and not entry.endswith("v")
            loop = Loop(int(cycles), int(elements or single), single, int(row["line"]))
            found[row["operation"], _DTYPES[entry[0]]] = loop
    return found


@functools.cache
def loop_of(form: str, operation: str, dtype: str) -> tuple[Loop, str] | None:
    """Returns the loop of an operation and the type it computes in; None for an operation without vertices.

    A type without a vertex uses the most similar one.

    Example:
        >>> loop_of("binary", "multiply", "float64")
        (Loop(cycles=1, elements=0, is_single=False, line=371), 'float32')
    """
    loops, tried = loops_of(form), dtype
    while (operation, tried) not in loops:
        if tried not in _SIMILAR:
            return next(((loop, key[1]) for key, loop in loops.items() if key[0] == operation), None)
        tried = _SIMILAR[tried]
    return loops[operation, tried], tried
