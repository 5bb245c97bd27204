"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph.options`: options of a converted pipeline."""

from __future__ import annotations

import json
from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph import utils

_KEY = "RunConfig"


class RunConfig:
    """How a pipeline runs.

    Args:
        num_required_ipus: how many IPUs it has.
        num_pipeline_stages: how many stages; one for each IPU when left out.
        gradient_accumulation_count: how many batches a run of the pipeline consumes; one for each stage when left out.
        batch_size: the size of each batch.
        batch_per_step: how many runs a step has.
        ipu_model: whether Graphcore's tool runs it on the IPU Model. Here all IPUs are simulated.
        matmul_partial_type: `"float"` or `"half"`: the dtype in which matmuls accumulate.
        conv_partial_type: the same for convolutions.
        matmul_amp: the part of a tile's memory, 0.0 to 1.0, for temporary values of matrix multiplications.
        conv_amp: the same for convolutions.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.options.RunConfig`.

    Example:
        >>> RunConfig(num_required_ipus=4).num_pipeline_stages
        4
    """

    def __init__(
        self,
        num_required_ipus: int = 1,
        num_pipeline_stages: int | None = None,
        gradient_accumulation_count: int | None = None,
        batch_size: int = 1,
        batch_per_step: int = 1,
        ipu_model: bool = True,
        matmul_partial_type: str = "float",
        conv_partial_type: str = "float",
        matmul_amp: float = 0.6,
        conv_amp: float = 0.6,
    ) -> None:
        self.num_required_ipus = num_required_ipus
        self.num_pipeline_stages = num_pipeline_stages or num_required_ipus
        self.gradient_accumulation_count = gradient_accumulation_count or self.num_pipeline_stages
        self.batch_size = batch_size
        self.batch_per_step = batch_per_step
        self.ipu_model = ipu_model
        self.matmul_partial_type = matmul_partial_type
        self.conv_partial_type = conv_partial_type
        self.matmul_amp = matmul_amp
        self.conv_amp = conv_amp

    def __str__(self) -> str:
        return f"{_KEY}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def to_json(self, filename: str) -> None:
        """Writes it to a file, which `from_json` reads."""
        with open(filename, "w", encoding="utf-8") as file:
            json.dump({_KEY: vars(self)}, file, indent=2)

    @classmethod
    def from_json(cls, filename: str) -> RunConfig:
        """Reads the output of `to_json`.

        Raises:
            ValueError: the file does not hold these options.
        """
        with open(filename, encoding="utf-8") as file:
            values = json.load(file)
        if not isinstance(values, dict) or not isinstance(values.get(_KEY), dict):
            raise ValueError(f"{filename} must contain {_KEY}, which is missing. Write the file with to_json.")
        return cls(**values[_KEY])

    def get_ipu_config(self) -> Any:
        """Returns an `IPUConfig` of these options."""
        return utils.get_ipu_config(
            self.num_required_ipus,
            matmul_amp=self.matmul_amp,
            conv_amp=self.conv_amp,
            matmul_partial_type=self.matmul_partial_type,
            conv_partial_type=self.conv_partial_type,
        )
