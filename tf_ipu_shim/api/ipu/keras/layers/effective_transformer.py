"""`tensorflow.python.ipu.keras.layers.effective_transformer`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.effective_transformer import EffectiveTransformer

__all__ = ["EffectiveTransformer"]
