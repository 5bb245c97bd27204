"""`tensorflow.python.ipu.optimizers`: wrappers of `tf.compat.v1.train` optimizers."""

from tf_ipu_shim.api.ipu.optimizers import map_gradient_optimizer, sharded_optimizer
from tf_ipu_shim.api.ipu.optimizers.map_gradient_optimizer import MapGradientOptimizer
from tf_ipu_shim.api.ipu.optimizers.sharded_optimizer import ShardedOptimizer
from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.optimizers.cross_replica_optimizer import CrossReplicaOptimizer
from tf_ipu_shim.frontend.optimizers.gradient_accumulation_optimizer import (
    CrossReplicaGradientAccumulationOptimizer,
    CrossReplicaGradientAccumulationOptimizerV2,
    GradientAccumulationOptimizer,
    GradientAccumulationOptimizerV2,
)
from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.legacy.tensorflow1.automatic_loss_scaling_optimizer import AutomaticLossScalingOptimizer

__all__ = [
    "AutomaticLossScalingOptimizer",
    "CrossReplicaGradientAccumulationOptimizer",
    "CrossReplicaGradientAccumulationOptimizerV2",
    "CrossReplicaOptimizer",
    "GradientAccumulationOptimizer",
    "GradientAccumulationOptimizerV2",
    "GradientAccumulationReductionMethod",
    "IpuOptimizer",
    "MapGradientOptimizer",
    "ShardedOptimizer",
    "automatic_loss_scaling_optimizer",
    "cross_replica_optimizer",
    "gradient_accumulation_optimizer",
    "ipu_optimizer",
    "map_gradient_optimizer",
    "sharded_optimizer",
]

__getattr__, __dir__ = lazy(
    __name__,
    ["automatic_loss_scaling_optimizer", "cross_replica_optimizer", "gradient_accumulation_optimizer", "ipu_optimizer"],
)
