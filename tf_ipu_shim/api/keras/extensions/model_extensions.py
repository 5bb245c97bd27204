"""`keras.ipu.extensions.model_extensions`: finds pipeline stages of subclassed models by a symbolic call."""

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
