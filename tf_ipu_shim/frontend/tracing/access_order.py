"""Orders a variable's reads and writes in a session's compiled function as stock `tf.xla.experimental.compile` does.

In such a graph only data and control dependencies order a read and a write; without any, each execution mode would
have its own order. XLA's is a reverse postorder that visits ops by their names.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.frontend.tracing import inlined_calls, internal_variables, needed_ops, script_order
from tf_ipu_shim.frontend.tracing.stock_graphs import Node, StockGraph
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import auto_control_deps_utils, func_graph, ops

_Access = tuple[ops.Operation, bool]  # an op, and whether it writes


def order_accesses(graph: func_graph.FuncGraph) -> None:
    """Adds control inputs between a write to a variable and its other accesses, also in called functions."""
    if _unordered_accesses(graph):
        StockGraph(graph).hold_calls()
        inlined_calls.inline_calls(graph)
    accesses = _unordered_accesses(graph)
    if not accesses:
        return
    internal: list[list[_Access]] = []
    others: list[list[_Access]] = []
    for found in accesses:
        is_internal = any(internal_variables.keeps_script_order(op) for op, _ in found)
        (internal if is_internal else others).append(found)
    _order(internal, script_order.script_order(graph))
    if others:
        # Stock's order is one of the graph with these edges, so that both agree. It may forget what calls wait for.
        accessing = {op for found in others for op, _ in found}
        in_order = [node for node in _compilation_order(graph) if node in accessing]
        _order(others, script_order.as_the_script_lets(graph, in_order))


def _order(accesses: Iterable[Sequence[_Access]], order: Iterable[ops.Operation]) -> None:
    """Orders the accesses to each variable as in an order of all ops."""
    places = {op: place for place, op in enumerate(order)}
    for found in accesses:
        _chain(sorted(found, key=lambda access: places[access[0]]))


def _unordered_accesses(graph: func_graph.FuncGraph) -> list[list[_Access]]:
    """Returns the accesses to each variable that one of several writes to."""
    accesses: dict[Hashable, list[_Access]] = {}
    for op in inlined_calls.live_ops(graph):
        _, writes = auto_control_deps_utils.get_read_write_resource_inputs(op)
        written = set(map(internal_variables.variable_of, writes))
        handles = [tensor for index, tensor in enumerate(op.inputs) if _is_accessed(op, index)]
        for variable in dict.fromkeys(map(internal_variables.variable_of, handles)):
            accesses.setdefault(variable, []).append((op, variable in written))
    return [found for found in accesses.values() if len(found) > 1 and any(writes for _, writes in found)]


def _is_accessed(op: ops.Operation, index: int) -> bool:
    return op.inputs[index].dtype == dtypes.resource and needed_ops.needs_input(op, index)


def _chain(accesses: Sequence[_Access]) -> None:
    """Orders each write after all accesses since the last one, and each read after the last write."""
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


def _compilation_order(graph: func_graph.FuncGraph) -> list[Node]:
    """Returns the nodes in XLA's order: reverse postorder that visits the users of a node by descending names."""
    stock = StockGraph(graph)
    users = stock.users()
    order: list[Node] = []
    visited: set[Node] = set()

    def entered(node: Node) -> list[tuple[Node, bool]]:
        found = (user for user in users.get(node, ()) if user not in visited)
        return [(user, False) for user in sorted(found, key=stock.names.__getitem__)]

    waiting = entered(None)
    while waiting:
        node, is_left = waiting.pop()
        if is_left:
            order.append(node)
        elif node not in visited:
            visited.add(node)
            waiting.append((node, True))
            waiting.extend(entered(node))
    return order[::-1]
