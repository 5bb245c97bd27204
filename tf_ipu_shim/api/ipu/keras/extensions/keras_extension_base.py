"""`tensorflow.python.ipu.keras.extensions.keras_extension_base` of SDK 2.4 to 3.0."""

from tf_ipu_shim.frontend.keras.models.extensions_base import KerasExtensionBase, logged_steps_per_execution_warning

__all__ = ["KerasExtensionBase", "logged_steps_per_execution_warning"]
