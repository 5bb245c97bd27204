"""`tensorflow.python.ipu.optimizers.ipu_optimizer`: the base class of optimizers that wrap another optimizer.

`tensorflow.python.ipu.ipu_optimizer`, as it was called before, had the optimizer for replicas too.
"""

from tf_ipu_shim.frontend.optimizers.cross_replica_optimizer import CrossReplicaOptimizer
from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer

__all__ = [
    "CrossReplicaOptimizer",
    "IpuOptimizer",
]
