"""`ipu_tensorflow_addons.layers`: layers of TensorFlow 1."""

from tf_ipu_shim.api.addons.layers import rnn_ops
from tf_ipu_shim.api.addons.layers.rnn_ops import PopnnAUGRU, PopnnDynamicGRU, PopnnDynamicLSTM, PopnnGRU, PopnnLSTM

__all__ = ["PopnnAUGRU", "PopnnDynamicGRU", "PopnnDynamicLSTM", "PopnnGRU", "PopnnLSTM", "rnn_ops"]
