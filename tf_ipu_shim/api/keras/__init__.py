"""`keras.ipu`: the IPU extensions of Keras. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

_EXTENSIONS = (
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "ReplicatedMetricReductionMethod",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
)
__ipu__built__ = "1"  # by which scripts tell Keras with `ipu` from stock Keras
_OPTIMIZERS = ("ALSOptimizer", "ALSOptimizerGradientAccumulationWrapper")

__getattr__, __dir__ = lazy(
    __name__,
    ["extensions", "layers", "optimizers"],
    {**dict.fromkeys(_EXTENSIONS, "extensions"), **dict.fromkeys(_OPTIMIZERS, "optimizers")},
)
