"""`keras.ipu.layers`: layers that capture gradients."""

from tf_ipu_shim.api.keras.layers.capture_upstream_gradients import CaptureActivationGradients, CaptureUpstreamGradients

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients"]
