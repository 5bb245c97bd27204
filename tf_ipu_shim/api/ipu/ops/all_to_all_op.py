"""`tensorflow.python.ipu.ops.all_to_all_op`: all-to-all and all-gather between replicas."""

from tf_ipu_shim.frontend.ops.collectives.all_to_all_op import all_gather, all_to_all

__all__ = [
    "all_gather",
    "all_to_all",
]
