"""`tensorflow.python.ipu.ops.internal_ops_grad`: the gradients of `internal_ops`, which come with the ops."""

from tf_ipu_shim.frontend.ops import internal_ops

__all__ = ["internal_ops"]
