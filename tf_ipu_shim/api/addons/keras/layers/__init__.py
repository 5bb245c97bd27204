"""`ipu_tensorflow_addons.keras.layers`: Keras layers for IPUs. They work with and without an IPU strategy."""

from tf_ipu_shim.api.lazy_modules import lazy

_PLACES = {
    "AssumeEqualAcrossReplicas": "assume_equal_across_replicas",
    "CTCInferenceLayer": "ctc",
    "CTCLoss": "ctc",
    "CTCPredictionsLayer": "ctc",
    "ConvertFromF8": "f8_convert",
    "ConvertToF8": "f8_convert",
    "Dense": "dense",
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
    "SerialDense": "dense",
}

__getattr__, __dir__ = lazy(__name__, {*_PLACES.values(), "ipu_layer"}, _PLACES)
