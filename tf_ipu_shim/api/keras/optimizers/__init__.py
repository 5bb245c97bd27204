"""`keras.ipu.optimizers`: wrappers of Keras 2 optimizers."""

from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.frontend.keras.optimizers.adam import ALSOptimizerAdam
from tf_ipu_shim.frontend.keras.optimizers.als_optimizer import (
    ALSGradientAccumulationOptimizer,
    ALSOptimizer,
    ALSOptimizerGradientAccumulationWrapper,
)
from tf_ipu_shim.frontend.keras.optimizers.gradient_accumulation_optimizer import GradientAccumulationOptimizer
from tf_ipu_shim.frontend.keras.optimizers.gradient_descent import ALSOptimizerSGD
from tf_ipu_shim.frontend.keras.optimizers.rmsprop import ALSOptimizerRMSProp

__all__ = [
    "ALSGradientAccumulationOptimizer",
    "ALSOptimizer",
    "ALSOptimizerAdam",
    "ALSOptimizerGradientAccumulationWrapper",
    "ALSOptimizerRMSProp",
    "ALSOptimizerSGD",
    "GradientAccumulationOptimizer",
]

__getattr__, __dir__ = lazy(
    __name__,
    (
        "adam als_optimizer gradient_accumulation_optimizer gradient_descent optimizer_v2_wrapper "
        "parameter_unscaling_optimizer rmsprop"
    ).split(),
)
