"""Selects which side-effecting ops run in a session's compiled function although no result depends on them.

Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
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

    Each comes after what the script did with the same variable before it, and before what it did later. Effects other
    than on variables keep the script's order, too.
    """
    needed = _required_ops(graph, required)
    further: list[ops.Operation] = []
    before: dict[int, list[ops.Operation]] = {}
    last: dict[int, ops.Operation] = {}
    for op in graph.get_operations():
        reads, writes = auto_control_deps_utils.get_read_write_resource_inputs(op)
        has_effect = bool(writes) or _has_nonvariable_effect(op)
        is_further = has_effect and op not in needed
        touched = [*map(id, (*reads, *writes))]
        if has_effect and not writes:
            touched.append(_ELSEWHERE)
        for thing in touched:
            if is_further:
                tf_graphs.add_control_inputs(op, before.pop(thing, []))
                last[thing] = op
            elif thing in last:
                tf_graphs.add_control_input(op, last[thing])
            before.setdefault(thing, []).append(op)
        if is_further:
            further.append(op)
    return further


_ELSEWHERE = 0
"""Stands for what is not a variable, where objects have their addresses."""


def _required_ops(graph: func_graph.FuncGraph, roots: Iterable[ops.Operation]) -> set[ops.Operation]:
    needed: set[ops.Operation] = set()
    pending = [op for op in roots if op.graph is graph]
    while pending:
        op = pending.pop()
        if op not in needed:
            needed.add(op)
            pending.extend([*(tensor.op for tensor in op.inputs), *op.control_inputs])
    return needed


def _has_nonvariable_effect(op: ops.Operation) -> bool:
    """Whether an op that writes no variable has an effect: a message, a check, an element of an outfeed, a call."""
    if op.type in auto_control_deps_utils.RESOURCE_READ_OPS or op.type in _WITHOUT_EFFECT:
        return False
    return auto_control_deps.op_is_stateful(op)


_WITHOUT_EFFECT = frozenset({vocabulary.REPLICATION_INDEX, vocabulary.RANDOM_SEED, "VarHandleOp", "Placeholder"})
