"""`keras.ipu.optimizers`: wrappers of Keras 2 optimizers."""

from tf_ipu_shim.api.keras.optimizers.adam import ALSOptimizerAdam
from tf_ipu_shim.api.keras.optimizers.als_optimizer import (
    ALSGradientAccumulationOptimizer,
    ALSOptimizer,
    ALSOptimizerGradientAccumulationWrapper,
)
from tf_ipu_shim.api.keras.optimizers.gradient_accumulation_optimizer import GradientAccumulationOptimizer
from tf_ipu_shim.api.keras.optimizers.gradient_descent import ALSOptimizerSGD
from tf_ipu_shim.api.keras.optimizers.rmsprop import ALSOptimizerRMSProp

__all__ = [
    "ALSGradientAccumulationOptimizer",
    "ALSOptimizer",
    "ALSOptimizerAdam",
    "ALSOptimizerGradientAccumulationWrapper",
    "ALSOptimizerRMSProp",
    "ALSOptimizerSGD",
    "GradientAccumulationOptimizer",
]
