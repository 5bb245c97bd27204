"""`tensorflow.python.ipu.keras.layers.embedding_lookup`, see `tf_ipu_shim.api.addons.keras.layers.embedding_lookup`."""

from tf_ipu_shim.api.addons.keras.layers.embedding_lookup import Embedding

__all__ = ["Embedding"]
