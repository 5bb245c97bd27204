"""`tensorflow.python.ipu.ops.rnn_ops_grad`: gradients of `rnn_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops.recurrent import rnn_ops

__all__ = ["rnn_ops"]
