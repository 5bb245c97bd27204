"""`tensorflow.python.ipu.keras.layers.recomputation`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.recomputation import RecomputationCheckpoint

__all__ = ["RecomputationCheckpoint"]
