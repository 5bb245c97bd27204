"""Derives the graph that stock XLA compiles for a session's compiled function, body or branch.

There, loops and branches of TensorFlow 1 are frames and switches first, which XLA makes functions of. Ops have other
names then, and some wait for the loop's first variable or for the branch's predicate.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.frontend.tracing import inlined_calls, needed_ops
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_util_v2
from tf_ipu_shim.tf_private.graphs import func_graph, ops

_LOOPS = (control_flow_util_v2.WhileBodyFuncGraph, control_flow_util_v2.WhileCondFuncGraph)


Node = Any
"""An op, or what stands for the predicate of a branch: stock passes it on to the branch."""
_PREDICATE = "predicate"


class StockGraph:
    """A graph as stock XLA orders it.

    Attributes:
        names: the names of its nodes.
    """

    names: dict[Node, str]

    def __init__(self, graph: func_graph.FuncGraph) -> None:
        self._first_variable: ops.Operation | None = None
        self._captured: set[ops.Operation] = set()
        scope = _scope(graph)
        self._is_branch = bool(scope) and not isinstance(graph, _LOOPS)
        self.names = {op: scope + op.name for op in inlined_calls.live_ops(graph)}
        if not scope:
            self.names.update(_argument_names(graph))
        elif self._is_branch:
            self._number_arguments(_switched(graph))
        else:
            entered = dict(_entered(graph))
            self._first_variable = next((op for op, name in entered.items() if name == "Enter"), None)
            self._captured = {inner.op for _, inner in graph.captures}
            self._number_arguments(entered)

    def _number_arguments(self, replaced: dict[Node, str]) -> None:
        """Names arguments by their place: sorted by the ops that XLA has replaced, resources last."""
        in_order = sorted(replaced, key=lambda node: (_is_resource(node), replaced[node]))
        self.names.update({node: f"arg{place}" for place, node in enumerate(in_order)})

    def users(self) -> dict[Node, list[Node]]:
        """Maps each node to its users and followers; nodes without dependencies are under None."""
        users: dict[Node, list[Node]] = {}
        for node in self.names:
            if not self._is_dropped(node):
                for source in self._sources(node) or [None]:
                    users.setdefault(source, []).append(node)
        return users

    def hold_calls(self) -> None:
        """Makes calls in a TensorFlow 1 loop wait for its iteration, as stock's do: inlined ops inherit this wait."""
        for node in self.names:
            if node is not _PREDICATE and node.type in vocabulary.CALLS:
                tf_graphs.add_control_inputs(node, [pivot for pivot in self._pivots(node) if pivot is not _PREDICATE])

    def _sources(self, node: Node) -> list[Node]:
        """Returns the inputs and control inputs of a node."""
        if node is _PREDICATE:
            return []
        sources = [*inlined_calls.stock_sources(node), *node.control_inputs, *self._pivots(node)]
        return list(dict.fromkeys(map(self._kept, sources)))

    def _pivots(self, op: ops.Operation) -> list[Node]:
        """Returns the ops for which TensorFlow 1 makes an op wait only to keep it in its iteration or branch."""
        if op.control_inputs or op.type == "Placeholder" or inlined_calls.is_inlined(op):
            return []
        if self._is_branch:
            return [] if op.inputs else [_PREDICATE]
        if self._first_variable is None or any(tensor.op not in self._captured for tensor in op.inputs):
            return []
        return [self._first_variable]

    def _kept(self, node: Node) -> Node:
        """Returns the node that XLA's graph optimizer uses instead of an identity."""
        while self._is_dropped(node):
            node = node.inputs[0].op
        return node

    def _is_dropped(self, node: Node) -> bool:
        """Returns whether XLA's graph optimizer removes an op."""
        if node is _PREDICATE or node.type != "Identity" or node.control_inputs or self._pivots(node):
            return False
        return bool(node.outputs[0].consumers() or tf_graphs.control_outputs(node))


def _is_resource(node: Node) -> bool:
    return node is not _PREDICATE and node.outputs[0].dtype == dtypes.resource


def _argument_names(graph: func_graph.FuncGraph) -> Iterator[tuple[ops.Operation, str]]:
    """Yields the arguments of a function, or of a functional body or branch, with their names."""
    is_program = not graph.outer_graph.building_function
    for outer, inner in graph.captures:
        if not is_program:
            yield inner.op, _argument_name(inner.op.name)
        elif not isinstance(outer, ops.EagerTensor):
            yield inner.op, f"{outer.op.name}_{outer.value_index}_arg".lower()


def _scope(graph: func_graph.FuncGraph) -> str:
    """Returns the scope of a body or branch of TensorFlow 1: stock builds it in the graph around it."""
    scopes = []
    while graph.outer_graph.building_function and getattr(graph, "_ipu_like_a_session", False):
        graph = graph.outer_graph
        scopes.append(graph.get_name_scope())
    return "".join(f"{scope}/" for scope in scopes[::-1] if scope)


def _switched(graph: func_graph.FuncGraph) -> dict[Node, str]:
    """Maps the arguments of a branch of TensorFlow 1 to the first of their `Switch` ops in all branches."""
    switches: dict[int, str] = {}
    for branch in graph._ipu_branches:
        for outer, inner in branch.captures:
            if needed_ops.is_argument_needed(inner):
                name = f"{_first_user(inner.op)}/Switch"
                switches[id(outer)] = min(name, switches.get(id(outer), name))
    found = {inner.op: switches[id(outer)] for outer, inner in graph.captures if id(outer) in switches}
    return {_PREDICATE: "Switch", **found}


def _entered(graph: func_graph.FuncGraph) -> Iterator[tuple[ops.Operation, str]]:
    """Yields the arguments of a loop of TensorFlow 1 with the names of its `Enter` ops.

    The first two are the iteration and the limit of iterations, which stock's loop has only if there is one.
    """
    captured = dict.fromkeys(inner.op for _, inner in graph.captures)
    counter, limit, *variables = (
        op for op in graph.get_operations() if op.type == "Placeholder" and op not in captured
    )
    if getattr(graph, "_ipu_is_limited", False):
        variables.insert(0, counter)
        yield limit, "Less/Enter"
    places: collections.Counter[str] = collections.Counter()
    for op, first_user in [*((op, "") for op in variables), *((op, _first_user(op)) for op in captured)]:
        name = f"{first_user}/Enter" if first_user else "Enter"
        yield op, f"{name}_{places[name]}" if places[name] else name
        places[name] += 1


def _first_user(argument: ops.Operation) -> str:
    """Returns the name of the first op that uses a captured value, also inside an inner body or branch."""
    graph = argument.graph
    places = {op: place for place, op in enumerate(graph.get_operations())}
    user = min(argument.outputs[0].consumers(), key=places.__getitem__, default=None)
    if user is None or user.type not in vocabulary.LOOPS | vocabulary.BRANCHES:
        return argument.name.rpartition("/")[0]
    index = next(index for index, tensor in enumerate(user.inputs) if tensor is argument.outputs[0])
    is_predicate = user.type in vocabulary.BRANCHES and not index
    within = "" if is_predicate else _first_user_within(user, index - len(user.inputs))
    return f"{user.name}/{within}" if within else user.name


def _first_user_within(user: ops.Operation, index: int) -> str:
    for called in op_types.called_functions(user.node_def):
        graph: Any = tf_functions.source_graph(tf_graphs.functions_by_name(user.graph)[called])
        if graph is not None and graph.inputs[index].consumers():
            return _first_user(graph.inputs[index].op)
    return ""


def _argument_name(name: str) -> str:
    """Converts an op's name to a name for a function's argument."""
    return re.sub("[^a-z0-9]", "_", name.lower())
