"""`keras.ipu.extensions.model_extensions`: pipeline stages of subclassed models, found by a call with Keras tensors."""

from tf_ipu_shim.frontend.keras.models.model_extensions import (
    ModelExtension,
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
)

__all__ = [
    "ModelExtension",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
]
