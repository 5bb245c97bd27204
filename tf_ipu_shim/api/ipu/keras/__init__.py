"""`tensorflow.python.ipu.keras`: Keras for IPUs before `keras.ipu`. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

_PLACES = {
    "CTCLoss": "losses",
    "FunctionalExtension": "extensions",
    "FunctionalLayerPipelineStageAssignment": "extensions",
    "Model": "model",
    "PipelineModel": "pipeline",
    "PipelineSequential": "pipeline",
    "PipelineStage": "pipeline",
    "PipelinedModel": "pipeline",
    "Sequential": "model",
    "SequentialExtension": "extensions",
    "SequentialLayerPipelineStageAssignment": "extensions",
    "SequentialPipelineModel": "pipeline",
}

__getattr__, __dir__ = lazy(
    __name__,
    ["extensions", "layer_replacement", "layers", "losses", "model", "optimizers", "pipeline"],
    _PLACES,
)
