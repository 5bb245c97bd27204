"""`tensorflow.python.ipu.ops.functional_ops_grad`: gradients of `functional_ops`, registered with the ops."""

from tf_ipu_shim.api.ipu.ops import functional_ops

__all__ = ["functional_ops"]
