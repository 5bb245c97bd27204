"""`tensorflow.python.ipu.ops.internal_ops_grad`: gradients of `internal_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops import internal_ops

__all__ = ["internal_ops"]
