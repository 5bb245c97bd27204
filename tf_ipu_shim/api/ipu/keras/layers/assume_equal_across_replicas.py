"""The old place of `tf_ipu_shim.api.addons.keras.layers.assume_equal_across_replicas`."""

from tf_ipu_shim.api.addons.keras.layers.assume_equal_across_replicas import AssumeEqualAcrossReplicas

__all__ = ["AssumeEqualAcrossReplicas"]
