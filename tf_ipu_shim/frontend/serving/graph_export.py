"""Writes serving exports from TensorFlow 1: each step in a separate graph, variables frozen to constants.

Uses `convert_variables_to_constants_from_session_graph`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.frontend.serving import loading, served_call
from tf_ipu_shim.frontend.serving import plan as plans
from tf_ipu_shim.frontend.serving.plan import ExportPlan, ServingStep
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.graphs import convert_to_constants, importer, ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import graph_pb2
from tf_ipu_shim.tf_private.saved_models import (
    builder,
    checkpoint_management,
    signature_constants,
    signature_def_utils,
    tag_constants,
)
from tf_ipu_shim.tf_private.sessions import session as session_lib
from tf_ipu_shim.tf_private.training import saver as saver_lib

_TABLES = ops.GraphKeys.TABLE_INITIALIZERS


def export(plan: ExportPlan) -> Callable[..., Any]:
    """Writes the SavedModel."""
    predict = _freeze_steps(plan, [plan.predict], None, compiled=True)[0]
    hosts = [step for step in (plan.before, plan.after) if step is not None]
    frozen = dict(zip((step.label for step in hosts), _freeze_steps(plan, hosts, plan.checkpoint)))
    graph = ops.Graph()
    with graph.as_default():
        with ops.device(loading.HOST):
            inputs = [array_ops.placeholder(spec.dtype, spec.shape, name=spec.name) for spec in plan.request]
        outputs = _build_serving_graph(plan, predict, frozen, inputs)
        names = plan.names(len(outputs))
        tables = control_flow_ops.group(*ops.get_collection(_TABLES)) if ops.get_collection(_TABLES) else None
        served_call.check_stock_ops(graph.as_graph_def())
        _write_saved_model(plan, inputs, dict(zip(names, outputs)), tables)
        definition = graph.as_graph_def()
    return _ipu_runtime(plan, definition, inputs, outputs, tables)


def _build_serving_graph(
    plan: ExportPlan, predict: _FrozenStep, frozen: dict[str, _FrozenStep], inputs: Sequence[Any]
) -> list[Any]:
    tensors = list(inputs)
    if plan.before is not None:
        with ops.device(loading.HOST):
            tensors = plans.pass_tensors(plan.before, frozen[plan.before.label].call(tensors), plan.predict)
    thawed = dataclasses.replace(
        plan, predict=ServingStep(plan.predict.label, lambda *values: predict.call(values), plan.predict.signature)
    )
    tensors = served_call.add_call(thawed, tensors)
    if plan.after is not None:
        with ops.device(loading.HOST):
            tensors = frozen[plan.after.label].call(plans.pass_tensors(plan.predict, tensors, plan.after))
    return tensors


@dataclasses.dataclass
class _FrozenStep:
    """A step as a graph without variables."""

    graph_def: graph_pb2.GraphDef
    inputs: list[str]
    outputs: list[str]
    tables: list[str]

    def call(self, tensors: Sequence[Any]) -> list[Any]:
        """Adds the step to the current graph."""
        results = importer.import_graph_def(
            self.graph_def,
            input_map=dict(zip(self.inputs, tensors)),
            return_elements=[*self.outputs, *self.tables],
            name="step",
        )
        for operation in results[len(self.outputs) :]:
            ops.add_to_collection(_TABLES, operation)
        return results[: len(self.outputs)]


def _freeze_steps(
    plan: ExportPlan, steps: Sequence[ServingStep], checkpoint: str | None, compiled: bool = False
) -> list[_FrozenStep]:
    """Steps of one graph, with the values that their variables are given."""
    graph = ops.Graph()
    with graph.as_default(), session_lib.Session(graph=graph) as session:
        pairs = []
        for step in steps:
            inputs = [array_ops.placeholder(spec.dtype, spec.shape) for spec in step.signature]
            pairs.append((inputs, _trace_step(step, inputs) if compiled else _name_outputs(step(inputs))))
        _restore_variables(plan, session, steps, checkpoint)
        tables = [operation.name for operation in ops.get_collection(_TABLES)]
        return [_freeze(session, inputs, outputs, tables) for inputs, outputs in pairs]


def _name_outputs(outputs: Sequence[Any]) -> list[Any]:
    return [array_ops.identity(output) for output in outputs]


def _trace_step(step: ServingStep, inputs: Sequence[Any]) -> list[Any]:
    outputs: list[Any] = []
    graph, _ = tracing.trace_function(step.label, lambda *values: outputs.extend(_name_outputs(step(values))), inputs)
    return tracing.add_nested_call(graph, outputs, []) if outputs else []


def _freeze(session: Any, inputs: Sequence[Any], outputs: Sequence[Any], tables: Sequence[str]) -> _FrozenStep:
    ends = [tensor.op.name for tensor in (*inputs, *outputs)]
    graph_def = session.graph.as_graph_def(add_shapes=True)
    frozen = convert_to_constants.convert_variables_to_constants_from_session_graph(
        session, graph_def, list(dict.fromkeys([*ends, *tables]))
    )
    return _FrozenStep(frozen, [operand.name for operand in inputs], [output.name for output in outputs], list(tables))


def _restore_variables(plan: ExportPlan, session: Any, steps: Sequence[ServingStep], checkpoint: str | None) -> None:
    variables = ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)
    if not variables:
        return
    if checkpoint is not None:
        saver_lib.Saver(variables).restore(session, latest_checkpoint(checkpoint))
    elif plan.variable_initializer is not None:
        plan.variable_initializer(session)
    else:
        names = ", ".join(variable.op.name for variable in variables)
        raise ValueError(
            f"The variables of `{steps[0].label}` are not initialised: {names}. Give `variable_initializer`, a "
            "function that takes a session and initialises them, or restores them from a checkpoint."
        )


def latest_checkpoint(directory: str) -> str:
    """Returns the newest checkpoint in a directory."""
    checkpoint = checkpoint_management.latest_checkpoint(directory)
    if checkpoint is None:
        raise ValueError(
            f'Directory "{directory}" passed as "checkpoint_restore_dir" param is empty, or has no '
            "checkpoint in it; expected a checkpoint. Save one there first."
        )
    return checkpoint


def _write_saved_model(plan: ExportPlan, inputs: Sequence[Any], outputs: dict[str, Any], tables: Any) -> None:
    signature = signature_def_utils.predict_signature_def(
        {spec.name: tensor for spec, tensor in zip(plan.request, inputs)}, outputs
    )
    with session_lib.Session() as session:
        writer = builder.SavedModelBuilder(plan.empty_directory())
        writer.add_meta_graph_and_variables(
            session,
            [tag_constants.SERVING],
            {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            main_op=tables,
        )
        writer.save()
    served_call.strip_ipu_devices(plan.directory)


def _ipu_runtime(
    plan: ExportPlan, definition: graph_pb2.GraphDef, inputs: Sequence[Any], outputs: Sequence[Any], tables: Any
) -> Callable[..., Any]:
    loading.create_programs(definition)
    names = [tensor.name for tensor in inputs]
    ends = [*(output.name for output in outputs), *([tables.name] if tables is not None else [])]

    def run(*values: Any) -> Any:
        tensors = [ops.convert_to_tensor(value, spec.dtype) for value, spec in zip(values, plan.request, strict=True)]
        results = importer.import_graph_def(definition, dict(zip(names, tensors)), ends, name="served")
        for operation in results[len(outputs) :]:
            ops.add_to_collection(_TABLES, operation)
        return plan.returned(results[: len(outputs)])

    return run
