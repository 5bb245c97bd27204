"""`tensorflow.python.ipu.keras.optimizers.ipu_wrappers`: the base class of optimizer wrappers."""

from tf_ipu_shim.legacy.old_keras.ipu_wrappers import IpuOptimizer, _KerasOptimizerWrapper

__all__ = [
    "IpuOptimizer",
    "_KerasOptimizerWrapper",
]
