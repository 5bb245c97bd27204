"""`tensorflow.python.ipu.keras.layers.effective_transformer`, see `api.addons.keras.layers.effective_transformer`."""

from tf_ipu_shim.api.addons.keras.layers.effective_transformer import EffectiveTransformer

__all__ = ["EffectiveTransformer"]
