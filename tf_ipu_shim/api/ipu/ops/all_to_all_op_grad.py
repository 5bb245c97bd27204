"""`tensorflow.python.ipu.ops.all_to_all_op_grad`: gradients of `all_to_all_op`, registered with the ops."""

from tf_ipu_shim.frontend.ops.collectives import all_to_all_op

__all__ = ["all_to_all_op"]
