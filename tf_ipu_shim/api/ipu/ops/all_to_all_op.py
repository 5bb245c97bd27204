"""`tensorflow.python.ipu.ops.all_to_all_op`: replicas hand tensors to each other."""

from tf_ipu_shim.frontend.ops.collectives.all_to_all_op import all_gather, all_to_all

__all__ = [
    "all_gather",
    "all_to_all",
]
