"""`tensorflow.python.ipu.ops.pipelining_ops`: pipelines one model over several IPUs, stage by stage."""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.pipelines.pipelining_ops import (
    OptimizerFunctionOutput,
    PipelineSchedule,
    PipelineStageOptions,
    RecomputationMode,
    pipeline,
    recomputation_checkpoint,
)

__all__ = [
    "OptimizerFunctionOutput",
    "PipelineSchedule",
    "PipelineStageOptions",
    "RecomputationMode",
    "pipeline",
    "recomputation_checkpoint",
]


# In a device mapping: a stage of all IPUs.
_ALL_DEVICES = -1


def _to_flat_list(values: Any) -> list[Any]:
    """Flattens nested sequences of values; Graphcore's own tests call it for stages' results."""
    flat: list[Any] = nest.flatten(values)
    return flat
