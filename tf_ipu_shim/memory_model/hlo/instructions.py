"""Groups HLO opcodes by their effect on memory, and computes the bytes of XLA shapes."""

from __future__ import annotations

import math
import re
from typing import Any

from tf_ipu_shim.tf_private.protos import xla_data_pb2

VIEWS = frozenset(
    (
        "add-dependency bitcast bitcast-convert broadcast concatenate domain iota pad reshape reverse "
        "set-dimension-size slice transpose"
    ).split()
)
ELEMENTWISE = frozenset(
    (
        "abs add and atan2 cbrt ceil clamp compare complex convert cosine count-leading-zeros divide erf exponential "
        "exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum minimum multiply negate not "
        "or popcnt power real reduce-precision remainder round-nearest-afz round-nearest-even rsqrt select shift-left "
        "shift-right-arithmetic shift-right-logical sign sine sqrt stochastic-convert subtract tan tanh xor"
    ).split()
)
UPDATES = frozenset({"dynamic-update-slice", "scatter"})  # write into their first operand
_UNKNOWN_BITS = 32


_GRADIENT = re.compile(r"(?:^|/)(?:gradients?(?:_\d+)?|gradient_tape)/")


def _bytes_by_type() -> dict[int, float]:
    sizes = {}
    for name, element_type in xla_data_pb2.PrimitiveType.items():
        bits = re.search(r"\d+", name)
        if name in ("PRIMITIVE_TYPE_INVALID", "TUPLE", "OPAQUE_TYPE", "TOKEN", "BUFFER"):
            sizes[element_type] = 0.0
        elif name == "PRED":
            sizes[element_type] = 1.0
        else:
            sizes[element_type] = int(bits.group() if bits else _UNKNOWN_BITS) / 8
    return sizes


_BYTES = _bytes_by_type()
_PREFIXES = {"PRED": "bool", "BF": "bfloat", "F": "float", "S": "int", "U": "uint", "C": "complex"}
_NAMES = {
    element_type: _PREFIXES[letters] + digits
    for name, element_type in xla_data_pb2.PrimitiveType.items()
    for letters, digits in re.findall(r"^(PRED|BF|F|S|U|C)(\d*)", name)
}


def shape_bytes(shape: Any) -> int:
    """Returns the bytes of an array of an XLA shape; 0 for a token."""
    return -int(-math.prod(shape.dimensions) * _BYTES.get(shape.element_type, 4.0) // 1)


def dtype_of(shape: Any) -> str:
    """Returns NumPy's name of a shape's element type."""
    return _NAMES.get(shape.element_type, "float32")


def is_gradient(name: str) -> bool:
    """Returns whether an op belongs to the backward pass, by TensorFlow's name for gradients."""
    return _GRADIENT.search(name) is not None
