"""`tensorflow.python.ipu.ops.slicing_ops_grad`: gradients of `slicing_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops import slicing_ops

__all__ = ["slicing_ops"]
