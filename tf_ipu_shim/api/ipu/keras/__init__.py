"""`tensorflow.python.ipu.keras`: Keras for IPUs before `keras.ipu`. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "layer_replacement layers optimizers",
    {
        "extensions": (
            "FunctionalExtension FunctionalLayerPipelineStageAssignment SequentialExtension "
            "SequentialLayerPipelineStageAssignment"
        ),
        "losses": "CTCLoss",
        "model": "Model Sequential",
        "pipeline": "PipelineModel PipelineSequential PipelineStage PipelinedModel SequentialPipelineModel",
    },
)
