"""`tensorflow.python.ipu.eager.backprop`: gradients of intermediate values, kept while a tape computes others."""

from tf_ipu_shim.frontend.gradients.backprop import (
    GradientCaptureContext,
    GradientCaptureTape,
    num_gradient_collection_tapes,
)

__all__ = [
    "GradientCaptureContext",
    "GradientCaptureTape",
    "num_gradient_collection_tapes",
]
