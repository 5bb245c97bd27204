"""`tensorflow.python.ipu.ops.math_ops`: segment sums and serialized matmuls."""

from tf_ipu_shim.frontend.ops.math_ops import segment_sum, serialized_matmul

__all__ = [
    "segment_sum",
    "serialized_matmul",
]
