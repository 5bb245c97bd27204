"""`ipu_tensorflow_addons.saved_model_tool.converter.pipeconf_loader`: reads pipeline stages from a file."""

from __future__ import annotations

import os
from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter import pipelines


class PipelineConfLoader(pipelines.PipelineConverter):
    """Makes a pipeline from a file, if `pipeline_cfg` has the converter `"load"`.

    `pipeline_cfg` has `solution_path`: a file that `TFv1Graph.save_pipeline_config`, or a conversion with `"manual"` or
    `"auto"`, has written.

    Args:
        param: see `PipelineConverter`.

    Raises:
        ValueError: see `PipelineConverter`; there is no such file.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.pipeconf_loader.PipelineConfLoader`.
    """

    behavior = "load"
    keys = ("ipu_model", "profiling_root_dir", "solution_path", "profiling_enable")
    required = ("solution_path",)
    unnamed = '`pipeline_cfg` must contain a value for "converter"'

    def check_values(self) -> None:
        """Checks the file."""
        path = self.cfg["solution_path"]
        if not os.path.isfile(path):
            raise ValueError(
                f"`solution_path` in `pipeline_cfg` is {path!r}; expected a file that exists. Write it with "
                "the converter 'manual' or 'auto'."
            )

    def configuration_file(self, graph_def: Any, signature_def: Any) -> str:
        """Returns the file that the conversion names."""
        return str(self.cfg["solution_path"])
