"""`ipu_tensorflow_addons.layers.rnn_ops`: see `tf_ipu_shim.frontend.ops.recurrent.rnn_ops`."""

from tf_ipu_shim.frontend.ops.recurrent.rnn_ops import (
    POPNN_AUGRU,
    POPNN_AUGRU_NUM_GATES,
    POPNN_DYNAMIC_GRU,
    POPNN_DYNAMIC_GRU_NUM_GATES,
    POPNN_GRU,
    POPNN_GRU_NUM_GATES,
    POPNN_LSTM,
    POPNN_LSTM_NUM_GATES,
    PopnnAUGRU,
    PopnnDynamicGRU,
    PopnnDynamicLSTM,
    PopnnGRU,
    PopnnLSTM,
)

__all__ = [
    "POPNN_AUGRU",
    "POPNN_AUGRU_NUM_GATES",
    "POPNN_DYNAMIC_GRU",
    "POPNN_DYNAMIC_GRU_NUM_GATES",
    "POPNN_GRU",
    "POPNN_GRU_NUM_GATES",
    "POPNN_LSTM",
    "POPNN_LSTM_NUM_GATES",
    "PopnnAUGRU",
    "PopnnDynamicGRU",
    "PopnnDynamicLSTM",
    "PopnnGRU",
    "PopnnLSTM",
]
