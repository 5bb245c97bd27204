"""`ipu_tensorflow_addons.v1.layers`: the same LSTM and GRU layers as `ipu_tensorflow_addons.layers`."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "rnn_ops": "PopnnAUGRU PopnnDynamicGRU PopnnDynamicLSTM PopnnGRU PopnnLSTM",
    },
)
