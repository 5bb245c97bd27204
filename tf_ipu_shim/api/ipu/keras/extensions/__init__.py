"""`tensorflow.python.ipu.keras.extensions` (SDK 2.2 to 3.0): the older package of `keras.ipu.extensions`."""

from tf_ipu_shim.api.keras.extensions import (
    FunctionalExtension,
    FunctionalLayerPipelineStageAssignment,
    ModelExtension,
    ModelLayerPipelineStageAssignment,
    PipelineStage,
    SequentialExtension,
    SequentialLayerPipelineStageAssignment,
)

__all__ = [
    "FunctionalExtension",
    "FunctionalLayerPipelineStageAssignment",
    "ModelExtension",
    "ModelLayerPipelineStageAssignment",
    "PipelineStage",
    "SequentialExtension",
    "SequentialLayerPipelineStageAssignment",
]
