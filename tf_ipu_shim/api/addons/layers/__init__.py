"""`ipu_tensorflow_addons.layers`: layers of TensorFlow 1."""

from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.frontend.ops.recurrent.rnn_ops import (
    PopnnAUGRU,
    PopnnDynamicGRU,
    PopnnDynamicLSTM,
    PopnnGRU,
    PopnnLSTM,
)

__all__ = ["PopnnAUGRU", "PopnnDynamicGRU", "PopnnDynamicLSTM", "PopnnGRU", "PopnnLSTM", "rnn_ops"]

__getattr__, __dir__ = lazy(__name__, ["rnn_ops"])
