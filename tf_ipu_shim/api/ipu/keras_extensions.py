"""`tensorflow.python.ipu.keras_extensions`: what a strategy changes of the datasets and Keras models in its scope."""

from tf_ipu_shim.frontend.strategies.keras_extensions import KerasExtensions

__all__ = [
    "KerasExtensions",
]
