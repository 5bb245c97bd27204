"""`tensorflow.python.ipu.keras.layers.assume_equal_across_replicas`, now in `ipu_tensorflow_addons.keras.layers`."""

from tf_ipu_shim.api.addons.keras.layers.assume_equal_across_replicas import AssumeEqualAcrossReplicas

__all__ = ["AssumeEqualAcrossReplicas"]
