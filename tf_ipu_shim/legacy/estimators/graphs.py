"""Inspects an estimator's loop body from the outer graph: captures, collectives, writes of the global step.

Uses `FuncGraph.captures`, `Graph._functions` and `Graph.create_op`; checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import func_graph, ops
from tf_ipu_shim.tf_private.training import training_util

_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "Assign", "AssignAdd", "AssignSub")


def outermost(tensor: Any) -> Any:
    """Returns the tensor outside of all functions: itself, unless it is an argument for a captured one."""
    graph = tensor.graph
    while isinstance(graph, func_graph.FuncGraph):
        outer = next((outside for outside, inside in graph.captures if inside is tensor), None)
        if outer is None:
            return tensor
        tensor, graph = outer, outer.graph
    return tensor


def refuse_global_step_writes(operations: Sequence[Any]) -> None:
    """Refuses a model function that counts steps itself."""
    step = training_util.get_global_step()
    if step is None:
        return
    handle = outermost(getattr(step, "handle", step))
    for operation in operations:
        if operation.type in _ASSIGNMENTS and outermost(operation.inputs[0]) is handle:
            raise ValueError(
                f"Illegal increment of the `global_step` variable in the `model_fn`, by {operation.name}; "
                "only the estimator may count steps, at the end of a loop. Leave `global_step` out of "
                "`minimize`."
            )


def has_collectives(graph: Any) -> bool:
    """Returns whether ops of a function, or of functions that it calls, exchange values between replicas."""
    definition = graph.as_graph_def()
    nodes = (definition.node, *(function.node_def for function in definition.library.function))
    return any(node.op in vocabulary.COLLECTIVES for some in nodes for node in some)


def sources(tensor: Any) -> set[str]:
    """The names of a tensor's sources outside of all functions, such as variables."""
    placeholders: set[str] = set()
    seen: set[Any] = set()
    waiting = [tensor]
    while waiting:
        pending = waiting.pop()
        outside = outermost(pending)
        if outside is not pending:
            placeholders.add(outside.op.name)
        elif pending.op not in seen:
            seen.add(pending.op)
            waiting.extend(pending.op.inputs)
            for control in pending.op.control_inputs:
                waiting.extend(control.inputs)
    return placeholders


def lifted(tensor: Any) -> Any:
    """Returns a tensor that depends on variables only, computed again in the graph around all functions."""
    target = ops.get_default_graph()
    copies: dict[Any, Any] = {}

    def copy(source: Any) -> Any:
        outside = outermost(source)
        if outside.graph is target:
            return outside
        operation = source.op
        if operation.type == "Placeholder":
            raise ValueError(
                f"The value {tensor.name} of a metric depends on the data of a step, not only on the metric's "
                "variables. Return (value, update) of tf.metrics, or compute it on the host with `eval_metrics`."
            )
        if operation not in copies:
            inputs = [copy(operand) for operand in operation.inputs]
            for function in tf_graphs.functions_by_name(operation.graph).values():
                if function.name in _called(operation) and function.name not in tf_graphs.functions_by_name(target):
                    function.add_to_graph(target)
            attributes = {name: value for name, value in operation.node_def.attr.items() if name[0] != "_"}
            dtypes = [output.dtype for output in operation.outputs]
            copies[operation] = target.create_op(operation.type, inputs, dtypes, attrs=attributes, name=operation.name)
        return copies[operation].outputs[source.value_index]

    with ops.device(None), ops.control_dependencies(None):
        return copy(tensor)


def _called(operation: Any) -> set[str]:
    values = operation.node_def.attr.values()
    return {function.name for value in values for function in [value.func, *value.list.func] if function.name}
