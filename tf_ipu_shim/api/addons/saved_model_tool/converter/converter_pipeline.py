"""`ipu_tensorflow_addons.saved_model_tool.converter.converter_pipeline`: runs the converters in order."""

from __future__ import annotations

import numbers
from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.auto_pipeline import AutoPipeline
from tf_ipu_shim.api.addons.saved_model_tool.converter.gelu_replacement import GeluReplacement
from tf_ipu_shim.api.addons.saved_model_tool.converter.int64_to_int32_conversion import Int64Conversion
from tf_ipu_shim.api.addons.saved_model_tool.converter.ipu_compiler_wrapper import IPUCompilerWrapper
from tf_ipu_shim.api.addons.saved_model_tool.converter.ipu_placement import IPUPlacement
from tf_ipu_shim.api.addons.saved_model_tool.converter.loop_repeat_wrapper import LoopRepeatWrapper
from tf_ipu_shim.api.addons.saved_model_tool.converter.manual_pipeline import ManualPipeline
from tf_ipu_shim.api.addons.saved_model_tool.converter.manual_shard import ManualSharding
from tf_ipu_shim.api.addons.saved_model_tool.converter.pipeconf_loader import PipelineConfLoader
from tf_ipu_shim.api.addons.saved_model_tool.converter.precision_conversion import PrecisionConversion
from tf_ipu_shim.frontend.conversion import batch_size

# Converters that read names run first: their regular expressions match the names of the original model.
_CONVERTERS = (
    GeluReplacement,
    PrecisionConversion,
    Int64Conversion,
    IPUPlacement,
    ManualSharding,
    IPUCompilerWrapper,
    LoopRepeatWrapper,
    ManualPipeline,
    AutoPipeline,
    PipelineConfLoader,
)
_BEHAVIORS = ("manual", "auto", "load")


class ConverterPipeline:
    """All converters, one after another.

    Args:
        param: an `IpuConversionParams`.
        signatrue_key: the key of the signature that is converted (spelt as Graphcore does).

    Raises:
        TypeError: a parameter is of another type.
        ValueError: parameters do not go together.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.converter_pipeline.ConverterPipeline`.
    """

    def __init__(self, param: Any, signatrue_key: str) -> None:
        _check(param, signatrue_key)
        self._batch_size = param.batch_size
        self._converters = [converter(param) for converter in _CONVERTERS]

    def ApplyConverters(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:  # noqa: N802
        """Returns the converted graph and its signature.

        Args:
            graph_def: a `GraphDef` without variables.
            signature_def: a `SignatureDef`.
        """
        # A model is left open to any batch size where nothing but 1, the default, is asked for.
        if self._batch_size != 1:
            graph_def, signature_def = batch_size.set_batch_size(graph_def, signature_def, self._batch_size)
        for converter in self._converters:
            graph_def, signature_def = converter.apply(graph_def, signature_def)
        return graph_def, signature_def


def _check(param: Any, signature_key: str) -> None:
    where = f"signature {signature_key!r}"
    if param.pipeline_cfg and str(param.pipeline_cfg.get("converter", "")).lower() not in _BEHAVIORS:
        raise ValueError(
            f'`pipeline_cfg` must contain a value for "converter" ({where}): {", ".join(map(repr, _BEHAVIORS))}, not '
            f"{param.pipeline_cfg.get('converter')!r}."
            ' Set "converter" to one of these.'
        )
    if param.batch_per_step and not param.embedded_runtime_save_config:
        raise ValueError(
            f"batch_per_step={param.batch_per_step} ({where}) is a loop over batches, which needs an "
            "application for the embedded runtime. Pass embedded_runtime_save_config too, or leave "
            "batch_per_step out."
        )
    if not isinstance(param.batch_size, numbers.Integral) or param.batch_size < 1:
        raise ValueError(
            f"batch_size ({where}) should be an integer, and greater than 0, not {param.batch_size!r}. Pass an integer "
            "of 1 or more."
        )
