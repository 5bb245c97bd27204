"""`keras.ipu.extensions`: IPU extensions of Keras models created in the scope of an `IPUStrategy`."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "data_adapter data_feed_manager extensions_util polling_thread register_extensions",
    {
        "extensions_base": "ReplicatedMetricReductionMethod",
        "functional_extensions": "FunctionalExtension",
        "model_extensions": "ModelExtension",
        "pipeline_stage_assignment": (
            "FunctionalLayerPipelineStageAssignment FunctionalNestedModelPipelineStageAssignment "
            "ModelLayerPipelineStageAssignment NestedModelPipelineStageAssignment PipelineStage "
            "SequentialLayerPipelineStageAssignment SequentialNestedModelPipelineStageAssignment"
        ),
        "sequential_extensions": "SequentialExtension",
    },
)
