"""`ipu_tensorflow_addons.keras.optimizers`: Keras 2 optimizers with chosen dtypes for state and arithmetic."""

from tf_ipu_shim.api.addons.keras.optimizers.adam_optimizer import AdamIpuOptimizer
from tf_ipu_shim.api.addons.keras.optimizers.ipu_optimizer_base import IpuOptimizerBase
from tf_ipu_shim.api.addons.keras.optimizers.lamb_optimizer import LAMBIpuOptimizer
from tf_ipu_shim.api.addons.keras.optimizers.sgd_optimizer import SGDIpuOptimizer

__all__ = ["AdamIpuOptimizer", "IpuOptimizerBase", "LAMBIpuOptimizer", "SGDIpuOptimizer"]
