"""`keras.ipu`: the IPU extensions of Keras. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__ipu__built__ = "1"  # by which scripts tell Keras with `ipu` from stock Keras
__getattr__, __dir__ = lazy(
    __name__,
    "layers",
    {
        "extensions": (
            "FunctionalLayerPipelineStageAssignment FunctionalNestedModelPipelineStageAssignment "
            "ModelLayerPipelineStageAssignment NestedModelPipelineStageAssignment PipelineStage "
            "ReplicatedMetricReductionMethod SequentialLayerPipelineStageAssignment "
            "SequentialNestedModelPipelineStageAssignment"
        ),
        "optimizers": "ALSOptimizer ALSOptimizerGradientAccumulationWrapper",
    },
)
