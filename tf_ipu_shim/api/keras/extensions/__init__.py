"""`keras.ipu.extensions`: IPU extensions of Keras models created in the scope of an `IPUStrategy`."""

from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.frontend.keras.models.extensions_base import ReplicatedMetricReductionMethod
from tf_ipu_shim.frontend.keras.models.functional_extensions import FunctionalExtension
from tf_ipu_shim.frontend.keras.models.model_extensions import ModelExtension
from tf_ipu_shim.frontend.keras.models.sequential_extensions import SequentialExtension
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
    PipelineStage,
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)

__getattr__, __dir__ = lazy(
    __name__,
    (
        "data_adapter data_feed_manager extensions_base extensions_util functional_extensions model_extensions "
        "pipeline_stage_assignment polling_thread register_extensions sequential_extensions"
    ).split(),
)

__all__ = [
    "FunctionalExtension",
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelExtension",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "ReplicatedMetricReductionMethod",
    "SequentialExtension",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
]
