"""`tensorflow.python.ipu.keras_extensions`: registers a strategy's extensions of datasets and Keras models."""

from tf_ipu_shim.frontend.strategies.keras_extensions import KerasExtensions

__all__ = [
    "KerasExtensions",
]
