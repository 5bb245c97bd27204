"""Builds convolutions for XLA that leave padding out where the CPU's kernels do.

XLA multiplies the zeros of the padding, and those between strides, with the elements of the other operand. With NaN and
infinity the product is NaN. For such elements, the result is computed from signs and counts of the products. OneDNN's
kernels leave padding out. Of TensorFlow's own, most multiply it as XLA does, some leave it out, and some multiply other
zeros: programs with those run in mode `kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import one_dnn
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

TYPES = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT})

Convolve = Callable[[Any, Any], Any]


class Operands(NamedTuple):
    """Places of a convolution's operands among its inputs.

    Args:
        beside_padding: the operand that is multiplied by zeros.
        other: the padded operand.
    """

    beside_padding: int
    other: int


OPERANDS = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), Operands(1, 0)),
    **dict.fromkeys(
        ("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"), Operands(1, 2)
    ),
    **dict.fromkeys(
        ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"), Operands(2, 0)
    ),
}
_LEAVES_OUT_OTHER_CHANNELS = "DepthwiseConv2dNativeBackpropFilter"
_MULTIPLIES_BETWEEN_STRIDES = "DepthwiseConv2dNativeBackpropInput"
# Whether their kernels multiply padding depends on the batch size or on the padding.
_BY_SHAPE = ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


def multiplies_padding(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether XLA multiplies zeros that the CPU's kernel leaves out."""
    if node.op not in OPERANDS or node.attr["T"].type not in TYPES:
        return False
    if node.op in ("Conv2DBackpropInput", _LEAVES_OUT_OTHER_CHANNELS):
        return True
    return _by_one_dnn(node) and (node.attr["padding"].s != b"VALID" or "BackpropInput" in node.op)


def multiplies_other_zeros(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether the CPU's kernel multiplies some of the zeros that XLA does, or others."""
    if node.op not in OPERANDS:
        return False
    if node.attr["T"].type == types_pb2.DT_DOUBLE:
        return True
    if _by_one_dnn(node):
        return False
    if node.op in _BY_SHAPE:
        return True
    if node.attr["padding"].s != b"VALID":
        return node.op == _LEAVES_OUT_OTHER_CHANNELS
    return node.op == _MULTIPLIES_BETWEEN_STRIDES and max(node.attr["strides"].list.i) > 1


def _by_one_dnn(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether a kernel of oneDNN that leaves padding out runs an op."""
    if not one_dnn.enabled() or one_dnn.has_avx512():
        return one_dnn.enabled()
    return node.attr["T"].type == types_pb2.DT_FLOAT and node.op != "Conv3DBackpropFilterV2"


def is_finite(node: node_def_pb2.NodeDef, inputs: Sequence[Any]) -> Any:
    """Returns whether all elements that padding is multiplied with are finite, so that XLA is right."""
    return math_ops.reduce_all(math_ops.is_finite(inputs[OPERANDS[node.op].beside_padding]))


def without_padding(node: node_def_pb2.NodeDef, original: Callable[..., list[Any]], inputs: Sequence[Any]) -> Any:
    """Builds the result for elements that are not finite."""
    operands = OPERANDS[node.op]

    def convolve(beside: Any, other: Any) -> Any:
        taken = list(inputs)
        taken[operands.beside_padding], taken[operands.other] = beside, other
        return original(*taken)[0]

    return _result(convolve, inputs[operands.beside_padding], inputs[operands.other])


def _result(convolve: Convolve, beside: Any, other: Any) -> Any:
    """Returns the sum of all products, from the signs of the infinite and NaN ones."""
    kind = beside.dtype
    zero = array_ops.constant(0.0, kind)

    def as_number(condition: Any) -> Any:
        return math_ops.cast(condition, kind)

    def any_product(*products: tuple[Any, Any]) -> Any:
        return sum((convolve(as_number(lhs), as_number(rhs)) for lhs, rhs in products), zero) > zero

    is_nan, is_infinite = math_ops.is_nan(beside), math_ops.is_inf(beside)
    plus, minus = math_ops.logical_and(is_infinite, beside > zero), math_ops.logical_and(is_infinite, beside < zero)
    above, below = other > zero, other < zero
    no_sign = math_ops.logical_not(math_ops.logical_or(above, below))
    has_nan = any_product((is_nan, array_ops.ones_like(no_sign)), (is_infinite, no_sign))
    has_plus, has_minus = any_product((plus, above), (minus, below)), any_product((plus, below), (minus, above))
    infinity = array_ops.constant(float("inf"), kind)
    zeros = array_ops.zeros_like(as_number(has_nan))
    added = array_ops.where_v2(has_plus, infinity, zeros) + array_ops.where_v2(has_minus, -infinity, zeros)
    added = array_ops.where_v2(has_nan, array_ops.constant(float("nan"), kind), added)
    lhs = array_ops.constant(1.0, kind)
    sign = array_ops.where_v2(beside < zero, -lhs, lhs)
    return convolve(array_ops.where_v2(math_ops.is_finite(beside), beside, sign), other) + added
