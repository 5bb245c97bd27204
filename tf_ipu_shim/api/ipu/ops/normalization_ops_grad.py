"""`tensorflow.python.ipu.ops.normalization_ops_grad`: gradients of `normalization_ops`, registered with the ops."""

from tf_ipu_shim.api.ipu.ops import normalization_ops

__all__ = ["normalization_ops"]
