"""The inner loops of PopLibs' element-wise vertices: cycles and elements of a loop, by operation and type.

Source: PopLibs `lib/popops/popopsCycleEstimators.hpp` at 7eac0f2. A row has an operation, the line of its first entry
there, and an entry for each type. An entry is a letter (see `_DTYPES`) and the cycles of a loop. `v` means that a loop
computes a 64-bit vector, `/N` that it computes N elements; otherwise it computes one. All are estimates for average
data.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

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

_UNARY = """
absolute 105 f1 h1 i2 l10
asin 110 h102 f102
bitwise_not 113 i1v l3v u1v m3v s2/4 t2/4
cbrt 124 f27v h17v
ceil 127 f2v h2v
cos 129 f2300 h25/1
inverse 131 h15/4 f6/2
count_leading_zeros 133 i1 u1
erf 135 f41/1 h13/1
gelu_erf 139 f22/1 h16/1
exponent 142 f6/2 h4/4
exponent_minus_one 145 f4 h5v
exponent2 148 f6/2 h4/4
floor 153 f2v h2v
is_finite 160 f5v h5v
is_inf 165 f3v h5v
is_nan 170 f3v h3v
logarithm 172 f12/2 h4/4
logarithm_one_plus 174 f18v h18v
logical_not 176 b17
negate 177 f2/2 h2/4 i2 l5
popcount 182 i1 u1
nearby_int 184 f2v h2v
round 186 f2v h2v
signum 188 f5v h5v i5
sin 191 f2300 h25/1
sqrt 193 f10/2 h23/4 i110
square 196 f2/2 h2/4 i1v u1v
tan 200 f5100/1 h5700/1
tanh 202 f12/2 h4/4
trunc 204 f3/2 h11/4
sigmoid 206 f12/2 h6/4
rsqrt 208 f8/2 h19/4
relu 210 f3/2 h3/4
"""
_BINARY = """
add 310 f1v h1v i7/1 u7/1 m11/1 l11/1
atan2 317 f272/2 h578/4
bitwise_and 320 i7/1 u7/1 m9/1 l9/1 s3/4 t3/4
bitwise_or 327 i7/1 u7/1 m9/1 l9/1 s3/4 t3/4
bitwise_xor 334 i7/1 u7/1 m9/1 l9/1 s5/2 t5/2
bitwise_xnor 341 i7/1 u7/1 m9/1 l9/1 s6/2 t6/2
divide 348 f10/2 h21/4 i277/1 u265/1 m115/1 l130/1
logical_and 355 b5/4
logical_or 356 b5/4
maximum 357 f3/2 h4/4 i7/1 u8/1 m13/1 l15/1
minimum 364 f3/2 h4/4 i7/1 u8/1 m13/1 l15/1
multiply 371 f1v h1v i7/1 u7/1 m30/1 l30/1
power 383 f312/1 h325/1 i32/1
remainder 390 f133/2 h300/4 i292/1 u282/1 m149/1 l166/1
shift_left 397 i7/1 u7/1 m18/1 l18/1
shift_right 402 i7/1 u7/1 m6/1 l6/1
shift_right_sign_extend 407 i7/1 l19/1
subtract 410 f1v h1v i7/1 u7/1 m11/1 l11/1
equal 417 f14/4 h9/4 i22/4 u22/4 m48/4 l48/4 s22/4 t22/4 b6/4
greater_than 428 f14/4 h9/4 i22/4 u22/4 m56/4 l56/4 b31/4
greater_than_equal 436 f14/4 h9/4 i26/4 u26/4 m62/4 l62/4 b28/4
less_than 444 f14/4 h9/4 i22/4 u22/4 m56/4 l56/4 b28/4
less_than_equal 452 f14/4 h9/4 i26/4 u26/4 m62/4 l62/4 b28/4
not_equal 460 f20/4 h11/4 i22/4 u22/4 m48/4 l48/4 s22/4 t22/4 b5/4
"""
_SCALAR = """
add 588 f1v h1v i6/1 u6/1 m9/1 l9/1
atan2 595 f272/2 h578/4
bitwise_and 598 i6/1 u6/1 m7/1 l7/1 s2/4 t2/4
bitwise_or 605 i6/1 u6/1 m7/1 l7/1 s2/4 t2/4
bitwise_xor 612 i6/1 u6/1 m7/1 l7/1 s4/2 t4/2
bitwise_xnor 619 i6/1 u6/1 m7/1 l7/1 s4/2 t4/2
divide 626 f6/2 h8/2 i277/1 u260/1 m148/1 l103/1
logical_and 633 b4/4
logical_or 634 b4/4
maximum 636 f3/2 h3/4 i6/1 u7/1 m11/1 l14/1
minimum 643 f3/2 h3/4 i6/1 u8/1 m13/1 l14/1
multiply 650 f1v h1v i6/1 u6/1 m26/1 l26/1
power 657 f312/1 h325/1 i23/1
remainder 664 f93/2 h225/4 i280/1 u267/1 m178/1 l137/1
shift_left 671 i6/1 l16/1 u6/1 m16/1
shift_right 676 i6/1 u6/1 m5/1 l5/1
shift_right_sign_extend 681 i6/1 l17/1
subtract 684 f1v h1v i6/1 u6/1 m9/1 l9/1
inv_std_dev_to_variance 691 f11/2 h10/2
variance_to_inv_std_dev 693 f12/2 h24/4
equal 696 f12/4 h8/4 i16/4 u16/4 m32/4 l32/4 s16/4 t16/4 b14/4
greater_than 706 f12/4 h8/4 i16/4 u16/4 m38/4 l38/4 b12/4
greater_than_equal 714 f12/4 h8/4 i20/4 u20/4 m50/4 l50/4 b12/4
less_than 722 f12/4 h8/4 i16/4 u16/4 m38/4 l38/4 b16/4
less_than_equal 730 f12/4 h8/4 i20/4 u20/4 m50/4 l50/4 b16/4
not_equal 738 f18/4 h10/4 i16/4 u16/4 m32/4 l32/4 s16/4 t16/4 b4/4
"""


class Loop(NamedTuple):
    """The inner loop of a vertex.

    Args:
        cycles: the cycles of an iteration, without loads, stores and the branch if `elements` is 0 or `is_single`.
        elements: the elements that an iteration computes; 0 for a 64-bit vector.
        is_single: whether an iteration computes one element, and loads and stores come on top.
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
    for row in {"unary": _UNARY, "binary": _BINARY, "scalar": _SCALAR}[form].split("\n")[1:-1]:
        operation, line, *entries = row.split()
        for entry in entries:
            cycles, _, elements = entry[1:].removesuffix("v").partition("/")
            single = not elements and not entry.endswith("v")
            loop = Loop(int(cycles), int(elements or single), single, int(line))
            found[operation, _DTYPES[entry[0]]] = loop
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
