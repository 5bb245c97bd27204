"""`ipu_tensorflow_addons.saved_model_tool.converter`: graph converters, one per module, loaded when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "autograph utils",
    {
        "auto_pipeline": "AutoPipeline",
        "converter": "Converter",
        "converter_pipeline": "ConverterPipeline",
        "gelu_replacement": "GeluReplacement",
        "int64_to_int32_conversion": "Int64Conversion",
        "ipu_compiler_wrapper": "IPUCompilerWrapper",
        "ipu_placement": "IPUPlacement",
        "loop_repeat_wrapper": "LoopRepeatWrapper",
        "manual_pipeline": "ManualPipeline",
        "manual_shard": "ManualSharding",
        "pipeconf_loader": "PipelineConfLoader",
        "precision_conversion": "PrecisionConversion",
    },
)
