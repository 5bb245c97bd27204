"""`tensorflow.python.ipu.keras.layers.ctc`, see `tf_ipu_shim.api.addons.keras.layers.ctc`."""

from tf_ipu_shim.api.addons.keras.layers.ctc import CTCInferenceLayer, CTCPredictionsLayer

__all__ = ["CTCInferenceLayer", "CTCPredictionsLayer"]
