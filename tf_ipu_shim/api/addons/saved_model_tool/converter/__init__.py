"""`ipu_tensorflow_addons.saved_model_tool.converter`: one converter a module. They load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    [
        "autograph",
        "converter",
        "converter_pipeline",
        "gelu_replacement",
        "int64_to_int32_conversion",
        "ipu_compiler_wrapper",
        "ipu_placement",
        "manual_shard",
        "precision_conversion",
        "utils",
    ],
    {
        "Converter": "converter",
        "ConverterPipeline": "converter_pipeline",
        "GeluReplacement": "gelu_replacement",
        "Int64Conversion": "int64_to_int32_conversion",
        "IPUCompilerWrapper": "ipu_compiler_wrapper",
        "IPUPlacement": "ipu_placement",
        "ManualSharding": "manual_shard",
        "PrecisionConversion": "precision_conversion",
    },
)
