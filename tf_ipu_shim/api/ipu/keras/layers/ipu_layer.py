"""`tensorflow.python.ipu.keras.layers.ipu_layer`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.frontend.layers.ipu_layer import IPULayer

__all__ = ["IPULayer"]
