"""`ipu_tensorflow_addons.saved_model_tool.converter`: one converter a module. They load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    [
        "auto_pipeline",
        "autograph",
        "converter",
        "converter_pipeline",
        "gelu_replacement",
        "int64_to_int32_conversion",
        "ipu_compiler_wrapper",
        "ipu_placement",
        "loop_repeat_wrapper",
        "manual_pipeline",
        "manual_shard",
        "pipeconf_loader",
        "precision_conversion",
        "utils",
    ],
    {
        "AutoPipeline": "auto_pipeline",
        "Converter": "converter",
        "ConverterPipeline": "converter_pipeline",
        "GeluReplacement": "gelu_replacement",
        "Int64Conversion": "int64_to_int32_conversion",
        "IPUCompilerWrapper": "ipu_compiler_wrapper",
        "IPUPlacement": "ipu_placement",
        "LoopRepeatWrapper": "loop_repeat_wrapper",
        "ManualPipeline": "manual_pipeline",
        "ManualSharding": "manual_shard",
        "PipelineConfLoader": "pipeconf_loader",
        "PrecisionConversion": "precision_conversion",
    },
)
