"""`keras.ipu.extensions.sequential_extensions`: assigns pipeline stages to the layers of `Sequential` models."""

from tf_ipu_shim.frontend.keras.models.sequential_extensions import (
    SequentialExtension,
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)

__all__ = [
    "SequentialExtension",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
]
