"""`tensorflow.python.ipu.keras.layers.dropout`, see `tf_ipu_shim.api.addons.keras.layers.dropout`."""

from tf_ipu_shim.api.addons.keras.layers.dropout import Dropout

__all__ = ["Dropout"]
