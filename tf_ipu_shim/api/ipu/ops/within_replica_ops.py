"""`tensorflow.python.ipu.ops.within_replica_ops`: collectives between the IPUs of one replica, one shard each."""

from tf_ipu_shim.frontend.ops.collectives.within_replica_ops import all_gather, all_reduce, reduce_scatter

__all__ = [
    "all_gather",
    "all_reduce",
    "reduce_scatter",
]
