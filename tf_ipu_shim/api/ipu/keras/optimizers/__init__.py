"""`tensorflow.python.ipu.keras.optimizers` of SDK 2.1 to 2.6: wrappers of Keras 2 optimizers."""

from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.legacy.old_keras.automatic_loss_scaling_optimizer import AutomaticLossScalingOptimizer
from tf_ipu_shim.legacy.old_keras.cross_replica_optimizer import CrossReplicaOptimizer
from tf_ipu_shim.legacy.old_keras.gradient_accumulation_optimizer import GradientAccumulationOptimizer
from tf_ipu_shim.legacy.old_keras.ipu_wrappers import IpuOptimizer
from tf_ipu_shim.legacy.old_keras.map_gradient_optimizer import (
    MapGradientOptimizer,
    MapGradientOptimizerInvertedChaining,
)

__all__ = [
    "AutomaticLossScalingOptimizer",
    "CrossReplicaOptimizer",
    "GradientAccumulationOptimizer",
    "IpuOptimizer",
    "MapGradientOptimizer",
    "MapGradientOptimizerInvertedChaining",
    "gradient_accumulate_optimizer",
]

__getattr__, __dir__ = lazy(
    __name__,
    (
        "automatic_loss_scaling_optimizer cross_replica_optimizer gradient_accumulate_optimizer "
        "gradient_accumulation_optimizer ipu_wrappers map_gradient_optimizer"
    ).split(),
)
