"""`tensorflow.python.ipu.keras.layers.recomputation`, see `tf_ipu_shim.api.addons.keras.layers.recomputation`."""

from tf_ipu_shim.api.addons.keras.layers.recomputation import RecomputationCheckpoint

__all__ = ["RecomputationCheckpoint"]
