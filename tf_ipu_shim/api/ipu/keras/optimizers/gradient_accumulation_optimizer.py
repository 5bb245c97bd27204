"""`tensorflow.python.ipu.keras.optimizers.gradient_accumulation_optimizer`; see `keras.ipu.optimizers`.

SDK 2.2 to 2.6 refuse to make one, because `Model.set_gradient_accumulation_options` is meant to be used. Here it works
with all of them, as it does in those before and after.
"""

from tf_ipu_shim.api.keras.optimizers.gradient_accumulation_optimizer import GradientAccumulationOptimizer
from tf_ipu_shim.building.old_keras.ipu_wrappers import IpuOptimizer
from tf_ipu_shim.building.optimizers.gradient_accumulation_optimizer import GradientAccumulationOptimizerV2

__all__ = ["GradientAccumulationOptimizer", "GradientAccumulationOptimizerV2", "IpuOptimizer"]
