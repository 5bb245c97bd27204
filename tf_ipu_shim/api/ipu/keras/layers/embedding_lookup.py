"""`tensorflow.python.ipu.keras.layers.embedding_lookup`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.embedding_lookup import Embedding

__all__ = ["Embedding"]
