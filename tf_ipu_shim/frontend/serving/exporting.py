"""Exports a function or pipeline for serving, from the call's arguments to the files, in TensorFlow 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.frontend.serving import eager_export, graph_export, plan, stages
from tf_ipu_shim.frontend.serving.plan import ExportPlan
from tf_ipu_shim.tf_private.graphs import ops


def export_single_step(predict_step: Callable[..., Any], export_dir: str, iterations: int, **arguments: Any) -> Any:
    """Exports a function."""
    if not callable(predict_step):
        raise TypeError(f"predict_step must be a function, not {type(predict_step).__name__}. Pass a function.")
    return export_plan(plan.make_plan(predict_step, export_dir, iterations, **arguments))


def export_pipeline(
    computational_stages: Sequence[Any],
    export_dir: str,
    iterations: int,
    *,
    inputs: Sequence[Any] | None = None,
    device_mapping: Sequence[Any] | None = None,
    pipeline_schedule: Any = None,
    poplar_options: Any = None,
    name: str | None = None,
    pipeline_depth: int | None = None,
    **arguments: Any,
) -> Any:
    """Exports a pipeline."""
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a list or a tuple of values for the first stage, not {inputs!r}.")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, not {name!r}.")
    iterations = depth = plan.check_count("iterations", iterations)
    if pipeline_depth is not None:
        depth = plan.check_count("pipeline_depth", pipeline_depth)
        iterations *= depth
    directory = plan.check_directory(export_dir, arguments.get("purge_export_dir", False))
    pipelined, ipus = stages.check_pipeline(
        computational_stages, depth, device_mapping, pipeline_schedule, poplar_options
    )
    chained = stages.chain_stages(pipelined, inputs)

    def predict(*values: Any) -> Any:
        with ops.name_scope(name or "pipeline"):
            return chained(*values)

    return export_plan(
        plan.make_plan(
            predict,
            directory,
            iterations,
            first_stage=stages.first_function(pipelined),
            bound=len(inputs or ()),
            ipus=ipus,
            **arguments,
        )
    )


def export_plan(plan: ExportPlan) -> Any:
    """Exports a serving plan in the way of the script's TensorFlow version."""
    if not ops.executing_eagerly_outside_functions():
        if plan.variable_initializer is not None and not callable(plan.variable_initializer):
            raise TypeError(
                f"variable_initializer must be a function, not {type(plan.variable_initializer).__name__}. Pass a "
                "function."
            )
        if plan.checkpoint is not None:
            graph_export.latest_checkpoint(plan.checkpoint)
        return graph_export.export(plan)
    for argument, value in (
        ("variable_initializer", plan.variable_initializer),
        ("checkpoint_restore_dir", plan.checkpoint),
    ):
        if value is not None:
            raise ValueError(
                f"{argument} is only for graphs of TensorFlow 1. In TensorFlow 2 variables are exported "
                "with the values they have. Initialise or restore them before the export."
            )
    return eager_export.export(plan)


def resolve_aliases(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a public function under the names that they have here."""
    old = arguments.pop("input_signature")
    if old is not None and arguments["predict_step_signature"] is not None:
        raise ValueError(
            "predict_step_signature and input_signature were both given; expected one, as "
            "input_signature is its name in SDKs up to 2.6. Pass only predict_step_signature."
        )
    if old is not None:
        arguments["predict_step_signature"] = old
    arguments["checkpoint"] = arguments.pop("checkpoint_restore_dir")
    return arguments
