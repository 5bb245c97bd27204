"""Replaces the gradient of nearest-neighbour image resizing (`UpSampling2D`), which XLA lacks, by matmuls.

Each pixel of the gradient is added to its source pixel. That is two matmuls with matrices of zeros and ones, for rows
and for columns. In mode `kernels` TensorFlow's op runs, in a tenth of the time. Both modes count the memory of the
matmuls.
"""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.tf_private.operations import array_ops, math_ops, special_math_ops
from tf_ipu_shim.tf_private.protos import types_pb2

_NARROW = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16})
_FLOATS = frozenset({types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, *_NARROW})


def replace_resize_gradients(functions: Functions) -> None:
    """Replaces such gradients; gradients of integers stay and are refused later."""
    op_functions.replace_ops(functions, {"ResizeNearestNeighborGrad": _gradient})


def _gradient(node: Node) -> op_functions.Replacement | None:
    attributes, kind = node.proto.attr, node.proto.attr["T"].type
    if kind not in _FLOATS:
        return None
    align_corners, half_pixels = attributes["align_corners"].b, attributes["half_pixel_centers"].b

    def build(_: Any, gradient: Any, size: Any) -> list[Any]:
        wide = math_ops.cast(gradient, dtypes.float32) if kind in _NARROW else gradient
        shape = array_ops.shape(gradient)
        columns, rows = (
            array_ops.one_hot(_source_pixels(shape[axis], size[axis - 1], align_corners, half_pixels), size[axis - 1],
                              dtype=wide.dtype)
            for axis in (2, 1)
        )  # fmt: skip
        summed = special_math_ops.einsum("bhwc,wx->bhxc", wide, columns)
        summed = special_math_ops.einsum("bhxc,hy->byxc", summed, rows)
        return [math_ops.cast(summed, kind)]

    return op_functions.Replacement(build, has_kernel=True)


def _source_pixels(output_size: Any, input_size: Any, align_corners: bool, half_pixels: bool) -> Any:
    """Returns each resized pixel's source pixel along an axis, by TensorFlow's arithmetic."""
    sizes = [math_ops.cast(size, dtypes.float32) for size in (output_size, input_size)]
    scale = sizes[1] / sizes[0]
    if align_corners:
        scale = array_ops.where_v2(output_size > 1, (sizes[1] - 1.0) / math_ops.maximum(sizes[0] - 1.0, 1.0), scale)
    pixels = math_ops.cast(math_ops.range(output_size), dtypes.float32)
    if half_pixels:
        pixels = pixels + 0.5
    pixels = pixels * scale
    # Ties are rounded away from zero.
    nearest = math_ops.floor(pixels + 0.5 if align_corners else pixels)
    return math_ops.minimum(math_ops.cast(nearest, dtypes.int32), input_size - 1)
