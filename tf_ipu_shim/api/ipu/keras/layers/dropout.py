"""`tensorflow.python.ipu.keras.layers.dropout`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.dropout import Dropout

__all__ = ["Dropout"]
