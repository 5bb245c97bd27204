"""`tensorflow.python.ipu.ops.cross_replica_ops`: sums and means over replicas."""

from tf_ipu_shim.frontend.ops.collectives.cross_replica_ops import (
    assume_equal_across_replicas,
    cross_replica_mean,
    cross_replica_sum,
)

__all__ = [
    "assume_equal_across_replicas",
    "cross_replica_mean",
    "cross_replica_sum",
]
