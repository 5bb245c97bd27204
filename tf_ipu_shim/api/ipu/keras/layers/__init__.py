"""`tensorflow.python.ipu.keras.layers`: the layers that moved to `ipu_tensorflow_addons.keras.layers` with SDK 2.6."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "ipu_layer",
    {
        "assume_equal_across_replicas": "AssumeEqualAcrossReplicas",
        "ctc": "CTCInferenceLayer CTCPredictionsLayer",
        "dropout": "Dropout",
        "effective_transformer": "EffectiveTransformer",
        "embedding_lookup": "Embedding",
        "math": "SerialDense",
        "normalization": "GroupNorm GroupNormalization InstanceNorm InstanceNormalization LayerNorm LayerNormalization",
        "recomputation": "RecomputationCheckpoint",
        "rnn": "GRU LSTM PopnnGRU PopnnLSTM",
    },
)
