"""`tensorflow.python.ipu.optimizers.ipu_optimizer`: the base of optimizers that wrap another one."""

from tf_ipu_shim.building.optimizers.ipu_optimizer import (
    IpuOptimizer,
)

__all__ = [
    "IpuOptimizer",
]
