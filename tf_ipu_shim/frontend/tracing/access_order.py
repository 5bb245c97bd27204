"""Orders a variable's reads and writes in a session's compiled function as stock `tf.xla.experimental.compile` does.

In such a graph only data and control dependencies order a read and a write; without any, each execution mode would
have its own order. XLA's is a reverse postorder that visits ops by their names. `side_effects` orders the writes that
no result needs.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    places = {op: place for place, op in enumerate(_compilation_order(graph))}
    for found in ordered:
        _chain(sorted(found, key=lambda access: places[access[0]]))


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
        sources = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        for source in dict.fromkeys(sources):
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


def _stock_names(graph: func_graph.FuncGraph) -> dict[ops.Operation, str]:
    """Maps ops to the names that they have where XLA compiles them."""
    names = {op: op.name for op in graph.get_operations()}
    for outer, inner in graph.captures:
        if not isinstance(outer, ops.EagerTensor):
            names[inner.op] = f"{outer.op.name}_{outer.value_index}_arg".lower()
    return names
