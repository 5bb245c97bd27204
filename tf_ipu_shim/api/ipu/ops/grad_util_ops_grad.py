"""`tensorflow.python.ipu.ops.grad_util_ops_grad`: gradients of `grad_util_ops`, registered with the ops."""

from tf_ipu_shim.frontend.gradients import grad_util_ops

__all__ = ["grad_util_ops"]
