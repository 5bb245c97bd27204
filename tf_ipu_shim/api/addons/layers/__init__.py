"""`ipu_tensorflow_addons.layers`: LSTM and GRU layers for TensorFlow 1 (`rnn_ops`)."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "rnn_ops": "PopnnAUGRU PopnnDynamicGRU PopnnDynamicLSTM PopnnGRU PopnnLSTM",
    },
)
