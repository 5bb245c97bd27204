"""`tensorflow.python.ipu.ops.nn_ops_grad`: gradients of `nn_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops import nn_ops

__all__ = ["nn_ops"]
