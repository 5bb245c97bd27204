"""`tensorflow.python.ipu.keras.optimizers.gradient_accumulate_optimizer`: the module's name in SDK 2.1."""

from tf_ipu_shim.api.ipu.keras.optimizers.gradient_accumulation_optimizer import (
    GradientAccumulationOptimizer,
    GradientAccumulationOptimizerV2,
)
from tf_ipu_shim.legacy.old_keras.ipu_wrappers import IpuOptimizer

__all__ = ["GradientAccumulationOptimizer", "GradientAccumulationOptimizerV2", "IpuOptimizer"]
