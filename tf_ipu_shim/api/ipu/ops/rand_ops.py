"""`tensorflow.python.ipu.ops.rand_ops`: see `tf_ipu_shim.frontend.ops.rand_ops`."""

from tf_ipu_shim.frontend.ops.rand_ops import dropout

__all__ = [
    "dropout",
]
