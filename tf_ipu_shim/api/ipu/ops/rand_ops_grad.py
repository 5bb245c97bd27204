"""`tensorflow.python.ipu.ops.rand_ops_grad`: gradients of `rand_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops import rand_ops

__all__ = ["rand_ops"]
