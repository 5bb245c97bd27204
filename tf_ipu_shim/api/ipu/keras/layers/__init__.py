"""`tensorflow.python.ipu.keras.layers`: the layers that moved to `ipu_tensorflow_addons.keras.layers` with SDK 2.6."""

from tf_ipu_shim.api.lazy_modules import lazy

_PLACES = {
    "AssumeEqualAcrossReplicas": "assume_equal_across_replicas",
    "CTCInferenceLayer": "ctc",
    "CTCPredictionsLayer": "ctc",
    "Dropout": "dropout",
    "EffectiveTransformer": "effective_transformer",
    "Embedding": "embedding_lookup",
    "GRU": "rnn",
    "GroupNorm": "normalization",
    "GroupNormalization": "normalization",
    "InstanceNorm": "normalization",
    "InstanceNormalization": "normalization",
    "LSTM": "rnn",
    "LayerNorm": "normalization",
    "LayerNormalization": "normalization",
    "PopnnGRU": "rnn",
    "PopnnLSTM": "rnn",
    "RecomputationCheckpoint": "recomputation",
    "SerialDense": "math",
}

__getattr__, __dir__ = lazy(__name__, {*_PLACES.values(), "ipu_layer"}, _PLACES)
