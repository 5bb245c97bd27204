"""`ipu_tensorflow_addons.saved_model_tool.converter.converter_pipeline`: the converters in their order."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.gelu_replacement import GeluReplacement
from tf_ipu_shim.api.addons.saved_model_tool.converter.int64_to_int32_conversion import Int64Conversion
from tf_ipu_shim.api.addons.saved_model_tool.converter.ipu_compiler_wrapper import IPUCompilerWrapper
from tf_ipu_shim.api.addons.saved_model_tool.converter.ipu_placement import IPUPlacement
from tf_ipu_shim.api.addons.saved_model_tool.converter.manual_shard import ManualSharding
from tf_ipu_shim.api.addons.saved_model_tool.converter.precision_conversion import PrecisionConversion
from tf_ipu_shim.errors import UnsupportedError

# What runs as it is named comes first: regular expressions mean the names that the model came with.
_CONVERTERS = (GeluReplacement, PrecisionConversion, Int64Conversion, IPUPlacement, ManualSharding, IPUCompilerWrapper)


class ConverterPipeline:
    """All converters, one after another.

    Args:
        param: an `IpuConversionParams`.
        signatrue_key: of the signature that is converted (spelt as Graphcore does).

    Raises:
        UnsupportedError: what only the embedded runtime can run is asked for.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.converter_pipeline.ConverterPipeline`.
    """

    def __init__(self, param: Any, signatrue_key: str) -> None:
        _refuse_embedded(param, signatrue_key)
        self._converters = [converter(param) for converter in _CONVERTERS]

    def ApplyConverters(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:  # noqa: N802
        """The converted graph and its signature.

        Args:
            graph_def: a `GraphDef` without variables.
            signature_def: a `SignatureDef`.
        """
        for converter in self._converters:
            graph_def, signature_def = converter.apply(graph_def, signature_def)
        return graph_def, signature_def


def _refuse_embedded(param: Any, signature_key: str) -> None:
    for name in ("embedded_runtime_save_config", "pipeline_cfg"):
        if getattr(param, name):
            raise UnsupportedError(
                f"{name} is not emulated (signature {signature_key!r}): the converter makes no application "
                "for the embedded runtime. Leave it out; "
                "manual_sharding with merge_subgraphs=True spreads a model over several IPUs."
            )
    if param.batch_per_step > 1:
        raise UnsupportedError(
            f"batch_per_step={param.batch_per_step} is not emulated (signature {signature_key!r}): a loop over "
            "batches needs an application for the "
            "embedded runtime, which the converter does not make. Leave batch_per_step out."
        )
    if param.batch_size != 1:
        raise UnsupportedError(
            f"batch_size={param.batch_size} is not emulated (signature {signature_key!r}): no converter changes the "
            "shapes of a model. Leave batch_size out, and save the model with the batch size that it is to have."
        )
