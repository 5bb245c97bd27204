"""Chains a pipeline's stages for serving: a request passes through them, each on its own IPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.pipelines.arguments import PipelineArguments, check_stage_options
from tf_ipu_shim.frontend.pipelines.options import PipelineSchedule, mini_batch_multiple
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import autograph
from tf_ipu_shim.frontend.validation.results import to_list
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops

Stages = list[list[tuple[Callable[..., Any], int]]]


def check_pipeline(
    stages: Sequence[Any], iterations: Any, device_mapping: Any, schedule: Any, options: Any
) -> tuple[Stages, int]:
    """Checks a pipeline with the same checks as in training."""
    arguments = PipelineArguments(
        computational_stages=stages,
        gradient_accumulation_count=iterations,
        device_mapping=device_mapping,
        pipeline_schedule=schedule,
    ).check()
    check_stage_options("poplar_options", options, len(stages))
    chosen = arguments.pipeline_schedule or PipelineSchedule.Grouped
    multiple = mini_batch_multiple(chosen, len(stages), training=False)
    if int(iterations) % multiple:
        raise ValueError(
            f"A pipeline of {len(stages)} stages and the schedule {chosen.name} runs a multiple of {multiple} "
            f"mini-batches, and iterations is {iterations}. Make it a multiple of {multiple}."
        )
    note_arguments("serving", pipeline_schedule=schedule, poplar_options=options)
    return arguments.functions, 1 + max(ipu for stage in arguments.functions for _, ipu in stage)


def chain_stages(stages: Stages, inputs: Sequence[Any] | None) -> Callable[..., list[Any]]:
    """Returns the stages one after another, as one function."""

    def predict(*values: Any) -> list[Any]:
        passed = [*(ops.convert_to_tensor(value) for value in inputs or ()), *values]
        for stage in stages:
            passed = [output for function, ipu in stage for output in _run_stage(function, ipu, passed)]
        return passed

    return predict


def first_function(stages: Stages) -> Callable[..., Any]:
    """Returns the function whose arguments are a request's."""
    return stages[0][0][0]


def _run_stage(function: Callable[..., Any], ipu: int, values: Sequence[Any]) -> list[Any]:
    with scopes.ipu_shard(ipu):
        if isinstance(function, def_function.Function):
            # Called as it is, its ops would not bear the stage's mark.
            function = function.python_function
        return to_list(autograph.convert(function)(*values))
