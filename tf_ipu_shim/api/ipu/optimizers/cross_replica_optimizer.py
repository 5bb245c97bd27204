"""`tensorflow.python.ipu.optimizers.cross_replica_optimizer`: sums gradients over replicas before the update."""

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
