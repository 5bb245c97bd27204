"""`tensorflow.python.ipu.ops.reduce_scatter_op`: combines the replicas' tensors, and leaves each replica a part."""

from tf_ipu_shim.frontend.ops.collectives.reduce_scatter_op import reduce_scatter

__all__ = [
    "reduce_scatter",
]
