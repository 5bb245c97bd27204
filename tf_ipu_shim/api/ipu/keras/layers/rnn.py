"""`tensorflow.python.ipu.keras.layers.rnn`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.rnn import (
    ACCEPTED_ACTIVATIONS,
    ACCEPTED_ACTIVATIONS_STR,
    ACCEPTED_RECURRENT_ACTIVATIONS,
    ACCEPTED_RECURRENT_ACTIVATIONS_STR,
    GRU,
    LSTM,
    POPNN_GRU,
    POPNN_GRU_NUM_GATES,
    POPNN_LSTM,
    POPNN_LSTM_NUM_GATES,
    PopnnGRU,
    PopnnLSTM,
)

__all__ = [
    "ACCEPTED_ACTIVATIONS",
    "ACCEPTED_ACTIVATIONS_STR",
    "ACCEPTED_RECURRENT_ACTIVATIONS",
    "ACCEPTED_RECURRENT_ACTIVATIONS_STR",
    "GRU",
    "LSTM",
    "POPNN_GRU",
    "POPNN_GRU_NUM_GATES",
    "POPNN_LSTM",
    "POPNN_LSTM_NUM_GATES",
    "PopnnGRU",
    "PopnnLSTM",
]
