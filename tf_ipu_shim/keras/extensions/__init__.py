"""`keras.ipu.extensions`: what Keras models made in the scope of an `IPUStrategy` gain.

pipeline_stage_assignment   which layer is in which stage
options                     what a model is told, checked
extensions_base             the methods all models have
functional_extensions, sequential_extensions, model_extensions   and each kind its own
data_adapter, data_feed_manager   data into queues
model_step, programs, pipelined_programs   what is compiled
running, polling_thread     executions and callbacks
replication                 replicas and their metrics
construction, import_hook   how models get their extension
"""

from tf_ipu_shim.keras.extensions.extensions_base import ReplicatedMetricReductionMethod
from tf_ipu_shim.keras.extensions.functional_extensions import FunctionalExtension
from tf_ipu_shim.keras.extensions.model_extensions import ModelExtension
from tf_ipu_shim.keras.extensions.pipeline_stage_assignment import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
    PipelineStage,
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)
from tf_ipu_shim.keras.extensions.sequential_extensions import SequentialExtension

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
