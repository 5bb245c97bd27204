"""`tensorflow.python.ipu.gradient_accumulation`: how gradients of mini-batches become one."""

from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod

__all__ = [
    "GradientAccumulationReductionMethod",
]
