"""`ipu_tensorflow_addons.keras.layers.ipu_layer`: see `tf_ipu_shim.frontend.layers.ipu_layer`."""

from tf_ipu_shim.frontend.layers.ipu_layer import IPULayer

__all__ = [
    "IPULayer",
]
