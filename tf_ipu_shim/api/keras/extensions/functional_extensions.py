"""`keras.ipu.extensions.functional_extensions`: pipeline stages of `Functional` models, call by call."""

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
