"""`tensorflow.python.ipu.keras.extensions.keras_util` of SDK 2.5 to 3.0."""

from tf_ipu_shim.frontend.keras.training.extensions_util import merge_into_batch_dimension

__all__ = ["merge_into_batch_dimension"]
