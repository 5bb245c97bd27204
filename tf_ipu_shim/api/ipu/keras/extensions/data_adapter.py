"""`tensorflow.python.ipu.keras.extensions.data_adapter` of SDK 2.2 to 3.0."""

from tf_ipu_shim.frontend.keras.training.data_adapter import IPUDataHandler

__all__ = ["IPUDataHandler"]
