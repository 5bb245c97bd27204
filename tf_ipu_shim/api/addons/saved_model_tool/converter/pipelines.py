"""Compiles a graph's pipeline stages to an embedded application, for the three converters that select the stages."""

from __future__ import annotations

import abc
import os
from typing import Any, ClassVar

from tf_ipu_shim.api.addons.saved_model_tool.converter import utils
from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph import utils as graph_utils
from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph.tfv1graph import TFv1Graph
from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.conversion import application, batch_size

RECORDED = ("ipu_model", "profiling_root_dir", "profiling_enable", "fine_tune_iter")


class PipelineConverter(Converter):
    """Makes an embedded application of the IPU's nodes: a pipeline. The graph calls its engine.

    Args:
        param: an `IpuConversionParams`. Its `pipeline_cfg` names the `converter`. `embedded_runtime_save_config` and
            `batch_size` are used too. `batch_per_step` is the number of pipeline executions before the host is asked
            for more work; 0 means 1.

    Raises:
        TypeError: an entry is of another type.
        ValueError: an entry is missing or unknown, or conflicts with other parameters.
    """

    behavior: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]] = ()
    unnamed: ClassVar[str] = "`pipeline_cfg` must contain `behavior` keywords"  # no converter is named

    def __init__(self, param: Any) -> None:
        self.param = param
        self.cfg = param.pipeline_cfg or {}
        if self.cfg:
            self._check()
        self._converts = utils.should_do_pipeline_wrapper(
            param.pipeline_cfg,
            self.behavior,
            param.embedded_runtime_save_config,
            param.batch_per_step,
            param.merge_subgraphs,
            param.int64_to_int32_conversion,
        )

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`. The application's file is written.

        Raises:
            ValueError: a shape is not fully defined, the part on the IPU is not one piece, or its stages do not form a
                pipeline.
            AttributeError: a node has no stage.
        """
        if not self._converts:
            return graph_def, signature_def
        note_arguments("pipeline_cfg", **{key: self.cfg[key] for key in RECORDED if key in self.cfg})
        fixed = batch_size.set_batch_size(graph_def, signature_def, self.param.batch_size)
        graph = stages_of(*fixed)
        graph.read_pipeline_config(self.configuration_file(*fixed))
        ipus = graph.device_info or []
        self._check_ipus(ipus)
        *_, executions = utils.extract_emb_setting_from_param(self.param)
        settings = utils.application_settings(self.param, max(self.param.num_ipus, self.ipus(ipus)))
        stages = graph.stages()
        by_stage = dict(zip(sorted(set(stages.values())), ipus, strict=True))
        return application.embed_application(
            *fixed, application.pipeline_program(stages, by_stage, executions), settings
        )

    @abc.abstractmethod
    def configuration_file(self, graph_def: Any, signature_def: Any) -> str:
        """Returns the path of the file with the stages, see `TFv1Graph.read_pipeline_config`."""

    def ipus(self, placed: list[int]) -> int:
        """Returns how many IPUs the stages need: a power of two, as the devices of a system are."""
        return graph_utils.next_power_of_two(max(placed) + 1)

    def _check(self) -> None:
        if not self.param.embedded_runtime_save_config:
            raise ValueError(
                "The `embedded_runtime_save_config` argument must be specified for a pipeline: it is an application "
                "for the embedded runtime. Pass embedded_runtime_exec_cachedir and runtime_api_timeout_us."
            )
        utils.validate_embedded_runtime_save_config(self.param)
        if self.param.manual_sharding:
            raise ValueError(
                "manual_sharding and pipeline_cfg both say which IPU a node is on. Leave one of them out; the "
                "stages of a pipeline are placed by device_info."
            )
        if "converter" not in self.cfg:
            raise ValueError(
                f"{self.unnamed}; expected a `converter`, and it has none. Set it to 'auto', 'manual' or 'load'."
            )
        utils.validate_pipeline_cfg(self.param, dict.fromkeys(("converter", *self.keys)), self.behavior)
        if self.cfg["converter"].lower() != self.behavior:
            return
        for key in self.required:
            if key not in self.cfg:
                raise ValueError(f"The `{key}` argument is required in `pipeline_cfg`. Add it to `pipeline_cfg`.")
        self.check_values()

    def check_values(self) -> None:
        """Checks the values that only this converter has."""

    def _check_ipus(self, ipus: list[int]) -> None:
        if not ipus or min(ipus) < 0:
            raise ValueError(
                f"The stages are on the IPUs {ipus}; expected 0, 1, 2, ... without a gap. Number the IPUs."
            )


def stages_of(graph_def: Any, signature_def: Any) -> TFv1Graph:
    """Returns a frozen graph whose nodes can be given stages."""
    return TFv1Graph(graph_utils.convert_graph_def_to_graph(graph_def), signature_def=signature_def)


def saved(graph: TFv1Graph, devices: list[int], directory: str, file: str) -> str:
    """Writes which stage each node of a graph is in, and the IPU of each stage.

    Args:
        graph: its nodes have their stages.
        devices: the IPU of each stage.
        directory: is made if there is none.
        file: its name in the directory.

    Returns:
        The path of the file.
    """
    graph.set_pipeline_device_info(devices)
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, file)
    graph.save_pipeline_config(path)
    return path
