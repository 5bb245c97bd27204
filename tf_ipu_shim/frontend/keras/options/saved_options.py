"""Saves and restores a model's accumulation and pipelining options as part of its configuration.

A model that is saved and loaded in the scope of an `IPUStrategy` keeps it; outside, stock Keras ignores the entry.
Values that JSON cannot represent (`pipelining_kwargs`, `gradient_accumulation_optimizer_kwargs`) are left out, as in
Graphcore's Keras.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.options.options import ModelOptions
from tf_ipu_shim.frontend.keras.options.replication import ReplicatedMetricReductionMethod

ENTRY = "ipu_extension"  # in the configuration of a model with extensions
_PLAIN = (
    "accumulation_steps",
    "use_v2_accumulation",
    "pipelining_steps",
    "device_mapping",
    "accumulate_outfeed",
    "infeed_kwargs",
    "outfeed_kwargs",
    "asynchronous_callbacks",
)
_METHODS = ("accumulation_reduction", "pipelining_reduction")
_METRICS = "metric_reduction"


def options_to_config(model: Any) -> dict[str, Any] | None:
    """Returns the entry of a model's configuration; None if nothing was set."""
    chosen: ModelOptions = model._ipu.options
    stages = _stage_numbers(model.get_pipeline_stage_assignment()) if model._is_pipelined() else None
    if stages is None and chosen == ModelOptions():
        return None
    config: dict[str, Any] = {name: getattr(chosen, name) for name in _PLAIN}
    config.update({name: GradientAccumulationReductionMethod.parse(getattr(chosen, name)).name for name in _METHODS})
    config[_METRICS] = ReplicatedMetricReductionMethod.parse(chosen.metric_reduction).name
    config["stages"] = stages
    return config


def restore_options(model: Any, entry: dict[str, Any]) -> None:
    """Restores a model's options from the output of `options_to_config`."""
    model._set(**{name: entry[name] for name in (*_PLAIN, *_METHODS, _METRICS)})
    if entry["stages"] is not None:
        assignments = model.get_pipeline_stage_assignment()
        _assign_stages(assignments, entry["stages"])
        model.set_pipeline_stage_assignment(assignments)


def _stage_numbers(assignments: list[Any]) -> list[Any]:
    return [
        _stage_numbers(assignment.pipeline_stage_assignments)
        if assignment.is_nested_model
        else assignment.pipeline_stage
        for assignment in assignments
    ]


def _assign_stages(assignments: list[Any], stages: list[Any]) -> None:
    for assignment, stage in zip(assignments, stages):
        if assignment.is_nested_model:
            _assign_stages(assignment.pipeline_stage_assignments, stage)
        else:
            assignment.pipeline_stage = stage
