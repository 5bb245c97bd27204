"""`tensorflow.python.ipu.ops.rnn_ops_grad`: the gradients of `rnn_ops`, which come with the ops."""

from tf_ipu_shim.frontend.ops.recurrent import rnn_ops

__all__ = ["rnn_ops"]
