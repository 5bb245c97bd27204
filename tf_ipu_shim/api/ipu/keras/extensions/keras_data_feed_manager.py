"""`tensorflow.python.ipu.keras.extensions.keras_data_feed_manager` of SDK 2.5 to 3.0."""

from tf_ipu_shim.frontend.keras.training.data_feed_manager import InfeedManager, OutfeedManager

__all__ = ["InfeedManager", "OutfeedManager"]
