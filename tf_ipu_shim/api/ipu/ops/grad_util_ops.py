"""`tensorflow.python.ipu.ops.grad_util_ops`: marks values whose gradients a script wants to see."""

from tf_ipu_shim.frontend.gradients.grad_util_ops import capture_upstream_gradients

__all__ = [
    "capture_upstream_gradients",
]
