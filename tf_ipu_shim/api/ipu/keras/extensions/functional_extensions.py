"""`tensorflow.python.ipu.keras.extensions.functional_extensions` of SDK 2.2 to 3.0."""

from tf_ipu_shim.frontend.keras.models.functional_extensions import (
    FunctionalExtension,
    FunctionalLayerPipelineStageAssignment,
    PipelineStage,
)

__all__ = ["FunctionalExtension", "FunctionalLayerPipelineStageAssignment", "PipelineStage"]
