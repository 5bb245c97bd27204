"""`ipu_tensorflow_addons.v1.layers`: layers of TensorFlow 1, for TensorFlow 2."""

from tf_ipu_shim.api.addons.v1.layers import rnn_ops
from tf_ipu_shim.api.addons.v1.layers.rnn_ops import PopnnAUGRU, PopnnDynamicGRU, PopnnDynamicLSTM, PopnnGRU, PopnnLSTM

__all__ = ["PopnnAUGRU", "PopnnDynamicGRU", "PopnnDynamicLSTM", "PopnnGRU", "PopnnLSTM", "rnn_ops"]
