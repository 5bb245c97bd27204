"""`tensorflow.python.ipu.keras.layers.ctc`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.ctc import CTCInferenceLayer, CTCPredictionsLayer

__all__ = ["CTCInferenceLayer", "CTCPredictionsLayer"]
