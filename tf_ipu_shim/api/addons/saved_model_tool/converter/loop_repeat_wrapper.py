"""`ipu_tensorflow_addons.saved_model_tool.converter.loop_repeat_wrapper`: loops over batches on the IPU."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter import utils
from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import application, batch_size


class LoopRepeatWrapper(Converter):
    """Makes an embedded application of the IPU's nodes: a loop over batches. The graph calls its engine.

    It is for an `IpuConversionParams` with `embedded_runtime_save_config` and without `pipeline_cfg`; with others
    nothing is converted.

    Args:
        param: an `IpuConversionParams`: its `batch_size`, and `batch_per_step`, the iterations of the loop before the
            host is asked whether there is more to do; 1 for 0.

    Raises:
        TypeError: `embedded_runtime_save_config` is not a dictionary.
        ValueError: it lacks an entry, or conflicts with other parameters.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.loop_repeat_wrapper.LoopRepeatWrapper`.
    """

    def __init__(self, param: Any) -> None:
        utils.validate_embedded_runtime_save_config(param)
        self._param = param
        self._converts = not param.pipeline_cfg and utils.should_do_embedded_runtime(
            param.embedded_runtime_save_config,
            param.batch_per_step,
            param.merge_subgraphs,
            param.int64_to_int32_conversion,
        )

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`. The application's file is written.

        Raises:
            ValueError: a shape is not fully defined, or the part on the IPU is not one piece.
        """
        if not self._converts:
            return graph_def, signature_def
        *_, iterations = utils.extract_emb_setting_from_param(self._param)
        fixed = batch_size.set_batch_size(graph_def, signature_def, self._param.batch_size)
        settings = utils.application_settings(self._param)
        return application.embed_application(*fixed, application.loop_program(iterations), settings)
