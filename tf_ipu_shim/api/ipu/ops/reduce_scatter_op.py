"""`tensorflow.python.ipu.ops.reduce_scatter_op`: reduces a tensor over replicas and keeps one slice on each."""

from tf_ipu_shim.frontend.ops.collectives.reduce_scatter_op import reduce_scatter

__all__ = [
    "reduce_scatter",
]
