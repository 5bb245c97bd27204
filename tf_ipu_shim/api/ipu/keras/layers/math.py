"""`tensorflow.python.ipu.keras.layers.math`, now `ipu_tensorflow_addons.keras.layers.dense`."""

from tf_ipu_shim.api.addons.keras.layers.dense import SerialDense

__all__ = ["SerialDense"]
