"""`tensorflow.python.ipu.optimizers.cross_replica_optimizer`: the same update on every replica."""

from tf_ipu_shim.frontend.optimizers.cross_replica_optimizer import (
    CrossReplicaOptimizer,
    IpuOptimizer,
    apply_cross_replica_op,
    apply_cross_replica_op_single,
)

__all__ = [
    "CrossReplicaOptimizer",
    "IpuOptimizer",
    "apply_cross_replica_op",
    "apply_cross_replica_op_single",
]
