"""`ipu_tensorflow_addons.saved_model_tool.converter.manual_pipeline`: assigns nodes to stages by name."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter import pipelines
from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph.options import RunConfig
from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph.strategies import ManualPipelineStrategy
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.conversion import graph_nodes

_FILE = "manual.pipeconfig"


class ManualPipelineImpl:
    """Writes which stage each node of a graph is in.

    Args:
        batch_size: see `IpuConversionParams` for all that are not named here.
        matmul_amp: the available memory proportion of matrix multiplications.
        num_ipus: the number of IPUs that the pipeline runs on.
        matmul_partial_type: the partials type of matrix multiplications.
        conv_amp: the available memory proportion of convolutions.
        conv_partial_type: the partials type of convolutions.
        ipu_model: the `ipu_model` setting of Graphcore's profiles; no effect.
        profiling_root_dir: the root directory of these profiles; no effect.
        solution_dir: the directory of the written file.
        manual_pipeline_config: for each stage a list of regular expressions.
        device_info: the IPU of each stage.
        profiling_enable: whether there is a profile; no effect.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.manual_pipeline.ManualPipelineImpl`.
    """

    def __init__(
        self,
        batch_size: int,
        matmul_amp: float,
        num_ipus: int,
        matmul_partial_type: str,
        conv_amp: float,
        conv_partial_type: str,
        ipu_model: bool,
        profiling_root_dir: str,
        solution_dir: str,
        manual_pipeline_config: list[list[str]],
        device_info: list[int],
        profiling_enable: bool,
    ) -> None:
        note_arguments(
            "pipeline_cfg",
            ipu_model=ipu_model,
            profiling_root_dir=profiling_root_dir,
            profiling_enable=profiling_enable,
        )
        self._config = RunConfig(
            num_required_ipus=num_ipus,
            num_pipeline_stages=len(manual_pipeline_config),
            batch_size=batch_size,
            matmul_amp=matmul_amp,
            conv_amp=conv_amp,
            matmul_partial_type=matmul_partial_type,
            conv_partial_type=conv_partial_type,
        )
        self._patterns = manual_pipeline_config
        self._devices = device_info
        self._directory = solution_dir

    def apply(self, graph_def: Any, signature: Any) -> str:
        """Writes the file.

        Args:
            graph_def: a `GraphDef` without variables.
            signature: its `SignatureDef`.

        Returns:
            The path of `manual.pipeconfig` in the directory for solutions.

        Raises:
            ValueError: another number of stages was placed.
        """
        graph = pipelines.stages_of(graph_def, signature)
        ManualPipelineStrategy(self._config).chop(graph, self._patterns)
        return pipelines.saved(graph, self._devices, self._directory, _FILE)


class ManualPipeline(pipelines.PipelineConverter):
    """Makes a pipeline with stages by regular expressions, if `pipeline_cfg` has the converter `"manual"`.

    `pipeline_cfg` has three entries. `manual_pipeline_config` is a list of regular expressions for each stage.
    `device_info` is the IPU of each stage, `solution_dir` the directory of the file with both. A node is in the stage
    whose list has the first expression that is found in its name, else in the first stage.

    Args:
        param: see `PipelineConverter`.

    Raises:
        TypeError: `manual_pipeline_config` is not a list of lists of strings.
        ValueError: see `PipelineConverter`.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.manual_pipeline.ManualPipeline`.
    """

    behavior = "manual"
    keys = (
        "ipu_model",
        "profiling_root_dir",
        "solution_dir",
        "manual_pipeline_config",
        "device_info",
        "profiling_enable",
    )
    required = ("manual_pipeline_config", "device_info")
    unnamed = "The `converter` argument is required in `pipeline_cfg`"

    def check_values(self) -> None:
        """Checks the patterns."""
        config = self.cfg["manual_pipeline_config"]
        if not isinstance(config, list):
            raise TypeError(f"`manual_pipeline_config` must be a list, not {type(config).__name__}. Pass a list.")
        graph_nodes.check_pattern_lists(config, "`manual_pipeline_config`")

    def configuration_file(self, graph_def: Any, signature_def: Any) -> str:
        """Writes the stages."""
        return self._do_manual_pipline(graph_def, signature_def)

    def _do_manual_pipline(self, graph_def: Any, signature_def: Any) -> str:  # Graphcore's own tests call it
        param = self.param
        return ManualPipelineImpl(
            param.batch_size,
            param.matmul_amp,
            param.num_ipus,
            param.matmul_partial_type,
            param.conv_amp,
            param.conv_partial_type,
            self.cfg.get("ipu_model", True),
            self.cfg.get("profiling_root_dir", "profiling"),
            self.cfg.get("solution_dir", "solution"),
            self.cfg["manual_pipeline_config"],
            self.cfg["device_info"],
            self.cfg.get("profiling_enable", False),
        ).apply(graph_def, signature_def)
