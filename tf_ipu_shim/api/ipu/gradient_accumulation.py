"""`tensorflow.python.ipu.gradient_accumulation`: reduction methods for accumulated gradients."""

from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod

__all__ = [
    "GradientAccumulationReductionMethod",
]
