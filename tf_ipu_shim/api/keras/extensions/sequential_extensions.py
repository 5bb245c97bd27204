"""`keras.ipu.extensions.sequential_extensions`: pipeline stages of `Sequential` models, layer by layer."""

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
