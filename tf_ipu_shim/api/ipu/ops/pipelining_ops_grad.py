"""`tensorflow.python.ipu.ops.pipelining_ops_grad`: gradients of `pipelining_ops`, registered with the ops."""

from tf_ipu_shim.frontend.pipelines import pipelining_ops

__all__ = ["pipelining_ops"]
