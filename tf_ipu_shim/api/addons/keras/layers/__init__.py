"""`ipu_tensorflow_addons.keras.layers`: Keras layers for IPUs. They work with and without an IPU strategy."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "ipu_layer",
    {
        "assume_equal_across_replicas": "AssumeEqualAcrossReplicas",
        "ctc": "CTCInferenceLayer CTCLoss CTCPredictionsLayer",
        "dense": "Dense SerialDense",
        "dropout": "Dropout",
        "effective_transformer": "EffectiveTransformer",
        "embedding_lookup": "Embedding",
        "f8_convert": "ConvertFromF8 ConvertToF8",
        "normalization": "GroupNorm GroupNormalization InstanceNorm InstanceNormalization LayerNorm LayerNormalization",
        "recomputation": "RecomputationCheckpoint",
        "rnn": "GRU LSTM PopnnGRU PopnnLSTM",
    },
)
