"""`tensorflow.python.ipu.ops.experimental.popfloat_ops_grad`: gradients of the casts, registered with the ops."""

from tf_ipu_shim.frontend.ops.float8 import popfloat_cast_to_gfloat

__all__ = ["popfloat_cast_to_gfloat"]
