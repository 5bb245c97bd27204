"""`tensorflow.python.ipu.ops.rand_ops`: dropout that recomputes its mask in the backward pass."""

from tf_ipu_shim.frontend.ops.rand_ops import dropout

__all__ = [
    "dropout",
]
