"""`tensorflow.python.ipu.eager.backprop`: gradient tapes that also capture gradients of intermediate tensors."""

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
