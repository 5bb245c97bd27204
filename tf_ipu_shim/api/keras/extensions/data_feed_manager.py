"""`keras.ipu.extensions.data_feed_manager`: a model's infeed and outfeed for each of fit, evaluate and predict."""

from tf_ipu_shim.frontend.keras.training.data_feed_manager import InfeedManager, OutfeedManager

__all__ = [
    "InfeedManager",
    "OutfeedManager",
]
