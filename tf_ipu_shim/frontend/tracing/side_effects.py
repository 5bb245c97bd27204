"""Selects which side-effecting ops run in a session's compiled function although no result depends on them.

Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import needed_ops, script_order
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import auto_control_deps, auto_control_deps_utils, func_graph, ops


def host_side_effects(graph: func_graph.FuncGraph) -> list[ops.Operation]:
    """Returns the ops that send to the host or, outside compilation, have an effect there other than on variables."""
    return [op for op in graph.get_operations() if _has_host_effect(op)]


def _has_host_effect(op: ops.Operation) -> bool:
    if op.type == vocabulary.SEND_TO_HOST:
        return True
    if not auto_control_deps.op_is_stateful(op):
        return False
    if any(tensor.dtype == dtypes.resource for tensor in (*op.inputs, *op.outputs)):
        return False
    return vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in op.node_def.attr


def unneeded_side_effects(graph: func_graph.FuncGraph, required: Iterable[ops.Operation]) -> list[ops.Operation]:
    """Returns the ops with a side effect that nothing wanted needs; loops, branches and calls are taken as a whole.

    Effects other than on variables keep the script's order as far as the order of accesses to variables lets them.
    """
    needed = needed_ops.required_ops(graph, required)
    further: list[ops.Operation] = []
    before: list[ops.Operation] = []
    last: ops.Operation | None = None
    for op in script_order.script_order(graph):
        writes = auto_control_deps_utils.get_read_write_resource_inputs(op)[1]
        is_elsewhere = not writes and _has_nonvariable_effect(op)
        is_further = bool(writes or is_elsewhere) and op not in needed
        if is_elsewhere and last is not None:
            tf_graphs.add_control_input(op, last)
        if is_elsewhere and is_further:
            tf_graphs.add_control_inputs(op, before)
            last, before = op, []
        elif is_elsewhere:
            before.append(op)
        if is_further:
            further.append(op)
    return further


def order_body(graph: func_graph.FuncGraph) -> list[ops.Operation]:
    """Orders the effects of a body or branch besides those on variables; returns the ops that must run."""
    last: ops.Operation | None = None
    effects: list[ops.Operation] = []
    for op in script_order.script_order(graph):
        if not auto_control_deps.op_is_stateful(op):
            continue
        if not any(tensor.dtype == dtypes.resource for tensor in op.inputs):
            if last is not None:
                tf_graphs.add_control_input(op, last)
            last = op
        if op.type not in auto_control_deps_utils.RESOURCE_READ_OPS or any(out.consumers() for out in op.outputs):
            effects.append(op)
    return effects


def _has_nonvariable_effect(op: ops.Operation) -> bool:
    """Whether an op that writes no variable has an effect: a message, a check, an element of an outfeed, a call."""
    if op.type in auto_control_deps_utils.RESOURCE_READ_OPS or op.type in _WITHOUT_EFFECT:
        return False
    return auto_control_deps.op_is_stateful(op)


_WITHOUT_EFFECT = frozenset({vocabulary.REPLICATION_INDEX, vocabulary.RANDOM_SEED, "VarHandleOp", "Placeholder"})
