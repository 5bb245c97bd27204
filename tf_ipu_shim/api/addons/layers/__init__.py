"""`ipu_tensorflow_addons.layers`: layers of TensorFlow 1."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "rnn_ops": "PopnnAUGRU PopnnDynamicGRU PopnnDynamicLSTM PopnnGRU PopnnLSTM",
    },
)
