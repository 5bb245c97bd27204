"""`keras.ipu.extensions.functional_extensions`: assigns pipeline stages to the layer calls of `Functional` models."""

from tf_ipu_shim.frontend.keras.models.functional_extensions import (
    FunctionalExtension,
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    PipelineStage,
)

__all__ = [
    "FunctionalExtension",
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "PipelineStage",
]
