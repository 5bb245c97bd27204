"""`tensorflow.python.ipu.keras.extensions.sequential_extensions` of SDK 2.2 to 3.0."""

from tf_ipu_shim.frontend.keras.models.sequential_extensions import (
    SequentialExtension,
    SequentialLayerPipelineStageAssignment,
)

__all__ = ["SequentialExtension", "SequentialLayerPipelineStageAssignment"]
