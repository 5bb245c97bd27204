"""`tensorflow.python.ipu.ops.pipelining_ops_grad`: the gradients of `pipelining_ops`, which come with the ops."""

from tf_ipu_shim.frontend.pipelines import pipelining_ops

__all__ = ["pipelining_ops"]
