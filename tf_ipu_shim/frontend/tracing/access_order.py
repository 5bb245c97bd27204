"""Orders a variable's reads and writes in a session's compiled function as stock `tf.xla.experimental.compile` does.

In such a graph only data and control dependencies order a read and a write; without any, each execution mode would
have its own order. XLA's is a reverse postorder that visits ops by their names.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import auto_control_deps_utils, func_graph, ops


def order_accesses(graph: func_graph.FuncGraph) -> None:
    """Adds control inputs between a write to a variable and its other accesses."""
    accesses: dict[int, list[tuple[ops.Operation, bool]]] = {}
    written: set[int] = set()
    for op in graph.get_operations():
        reads, writes = auto_control_deps_utils.get_read_write_resource_inputs(op)
        writing = set(map(id, writes))
        written |= writing
        for variable in {*map(id, reads), *writing}:
            accesses.setdefault(variable, []).append((op, variable in writing))
    ordered = [accesses[variable] for variable in accesses if variable in written and len(accesses[variable]) > 1]
    if not ordered:
        return
    position_of = {op: position for position, op in enumerate(_compilation_order(graph))}
    for variable_accesses in ordered:
        _chain(sorted(variable_accesses, key=lambda access: position_of[access[0]]))


def _chain(accesses: Sequence[tuple[ops.Operation, bool]]) -> None:
    """Has each write follow all accesses since the last one, and each read the last write."""
    last: ops.Operation | None = None
    since: list[ops.Operation] = []
    for op, writes in accesses:
        if last is not None:
            tf_graphs.add_control_input(op, last)
        if writes:
            tf_graphs.add_control_inputs(op, since)
            last, since = op, []
        else:
            since.append(op)


def _compilation_order(graph: func_graph.FuncGraph) -> list[ops.Operation]:
    """Returns the ops in XLA's order: reverse postorder that visits the users of an op by descending names."""
    names = _stock_names(graph)
    users: dict[ops.Operation, list[ops.Operation]] = {op: [] for op in graph.get_operations()}
    roots = []
    for op in users:
        if _is_dropped(op):
            continue
        sources = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        for source in dict.fromkeys(map(_kept_source, sources)):
            users[source].append(op)
        if not sources:
            roots.append(op)
    order: list[ops.Operation] = []
    visited: set[ops.Operation] = set()
    waiting = [(op, False) for op in sorted(roots, key=names.__getitem__)]
    while waiting:
        op, is_left = waiting.pop()
        if is_left:
            order.append(op)
        elif op not in visited:
            visited.add(op)
            waiting.append((op, True))
            waiting.extend((user, False) for user in sorted(users[op], key=names.__getitem__) if user not in visited)
    return order[::-1]


def _kept_source(op: ops.Operation) -> ops.Operation:
    """Returns the op whose value XLA's graph optimizer has users take instead of an identity's."""
    while _is_dropped(op):
        op = op.inputs[0].op
    return op


def _is_dropped(op: ops.Operation) -> bool:
    is_used = op.type == "Identity" and bool(op.outputs[0].consumers() or tf_graphs.control_outputs(op))
    return is_used and not op.control_inputs


def _stock_names(graph: func_graph.FuncGraph) -> dict[ops.Operation, str]:
    """Maps ops to the names that they have where XLA compiles them."""
    scope = _scope(graph)
    names = {op: scope + op.name for op in graph.get_operations()}
    if scope:
        names.update(_functionalized_names(graph))
        return names
    is_program = not graph.outer_graph.building_function
    for outer, inner in graph.captures:
        if not is_program:
            names[inner.op] = _argument_name(inner.op.name)
        elif not isinstance(outer, ops.EagerTensor):
            names[inner.op] = f"{outer.op.name}_{outer.value_index}_arg".lower()
    return names


def _scope(graph: func_graph.FuncGraph) -> str:
    """Returns the scope of a body or branch of TensorFlow 1: stock builds it in the graph around it."""
    scopes = []
    while graph.outer_graph.building_function and getattr(graph, "_ipu_like_a_session", False):
        graph = graph.outer_graph
        scopes.append(graph.get_name_scope())
    return "".join(f"{scope}/" for scope in scopes[::-1] if scope)


def _functionalized_names(graph: func_graph.FuncGraph) -> dict[ops.Operation, str]:
    """Maps the arguments of a TensorFlow 1 body or branch to the names that XLA gives them: resources last."""
    values = [tensor.op for tensor in graph.inputs if tensor.dtype != dtypes.resource]
    resources = [tensor.op for tensor in graph.inputs if tensor.dtype == dtypes.resource]
    resources.sort(key=lambda op: _argument_name(op.name))
    return {op: f"arg{index}" for index, op in enumerate([*values, *resources])}


def _argument_name(name: str) -> str:
    """Returns an op's name as that of a function's argument."""
    return re.sub("[^a-z0-9]", "_", name.lower())
