"""`tensorflow.python.ipu.ops.grad_util_ops`: tags tensors whose upstream gradients are to be captured."""

from tf_ipu_shim.frontend.gradients.grad_util_ops import capture_upstream_gradients

__all__ = [
    "capture_upstream_gradients",
]
