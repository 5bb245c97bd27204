"""`tensorflow.python.ipu.keras.extensions.model_extensions` of SDK 2.2 to 3.0."""

from tf_ipu_shim.frontend.keras.models.model_extensions import ModelExtension, ModelLayerPipelineStageAssignment

__all__ = ["ModelExtension", "ModelLayerPipelineStageAssignment"]
