"""Prunes ops from TensorFlow 1 loop and branch bodies that their results do not depend on.

TensorFlow's functional loops and branches run everything with a side effect, including the updates of a model that is
only evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node, data_inputs
from tf_ipu_shim.compiler.passes.dead_code_elimination import has_effect
from tf_ipu_shim.tf_private.protos import node_def_pb2


def prune_bodies(functions: Functions) -> None:
    """Removes ops from marked loops and branches that results do not depend on."""
    for name in functions.reached():
        for node in functions[name].nodes:
            for called in _called(node):
                _replace(functions, functions[called], _needed_by_results(functions[called]))
    effects = _Effects(functions)
    for name in functions.reached():
        graph = functions[name]
        _replace(
            functions, graph, _with_control_returns(graph, list(filter(effects.has_effect, graph.control_returns)))
        )


def _replace(functions: Functions, graph: FunctionGraph, new_graph: FunctionGraph) -> None:
    if new_graph is not graph:
        functions.add(new_graph)


def _called(node: Node) -> Sequence[str]:
    """Returns the functions of a marked loop or branch."""
    is_marked = vocabulary.NEEDED_ATTRIBUTE in node.proto.attr and node.op in vocabulary.LOOPS | vocabulary.BRANCHES
    return op_types.called_functions(node.proto) if is_marked else ()


def _needed_by_results(graph: FunctionGraph) -> FunctionGraph:
    """Returns the function with only the ops that its results need; itself if they need all.

    TensorFlow makes the results wait for all side effects, and each side effect for those before it. Such a wait does
    not make an op needed, but it orders needed ops. Only the waits of the function itself are kept. A gradient returns
    values from the middle of the function, before some side effects, and these would wait for each other.
    """
    live = _needed(graph)
    returned = [node.name for node in graph.control_returns if node.name in live]
    if len(returned) == len(graph.control_returns) and len(live) == len(graph.nodes):
        return graph
    order = _remaining_order(graph, live)
    return _rebuilt(
        graph, [_with_controls(node.proto, order[node.name]) for node in graph.nodes if node.name in live], returned
    )


def _needed(graph: FunctionGraph) -> set[str]:
    """Returns the names of ops that results or returned operations depend on."""
    requested = [node for node in graph.nodes if vocabulary.ASKED_ATTRIBUTE in node.proto.attr]
    return {node.name for node in graph.needed(graph.returns, requested, _is_requested)}


def _is_requested(node: Node, control: Node) -> bool:
    attributes = node.proto.attr  # protobuf adds an attribute that is read and not there
    if vocabulary.WAITS_ATTRIBUTE not in attributes:
        return False
    return control.name.encode() in attributes[vocabulary.WAITS_ATTRIBUTE].list.s


def _remaining_order(graph: FunctionGraph, live: set[str]) -> dict[str, list[str]]:
    """Maps each remaining op to the remaining ops it waits for, also through removed ones."""
    before: dict[str, dict[str, None]] = {}
    for node in graph.nodes:  # what they wait for comes first
        before[node.name] = {}
        for control in node.controls:
            before[node.name].update({control.name: None} if control.name in live else before[control.name])
    return {name: list(names) for name, names in before.items()}


class _Effects:
    """Finds ops with effects besides their results, including control flow that contains one."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._known: dict[str, bool] = {}

    def has_effect(self, node: Node) -> bool:
        """Returns whether removing an op would be observable."""
        if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
            return True  # the function's author marked it as one that must run
        return any(map(self._of_function, op_types.called_functions(node.proto)))

    def _of_function(self, name: str) -> bool:
        if name not in self._functions:
            return True
        if name not in self._known:
            self._known[name] = False  # for recursive functions
            self._known[name] = any(map(self._is_effect, self._functions[name].nodes))
        return self._known[name]

    def _is_effect(self, node: Node) -> bool:
        return self.has_effect(node) if node.op in vocabulary.FUNCTION_ATTRIBUTES else has_effect(node.op)


def _with_control_returns(graph: FunctionGraph, nodes: Sequence[Node]) -> FunctionGraph:
    """Returns the function with these nodes as control outputs; itself if they already are."""
    if len(nodes) == len(graph.control_returns):
        return graph
    return _rebuilt(graph, [node.proto for node in graph.nodes], [node.name for node in nodes])


def _rebuilt(graph: FunctionGraph, protos: list[node_def_pb2.NodeDef], control_results: list[str]) -> FunctionGraph:
    """Returns the function rebuilt from some of its ops."""
    new_graph = FunctionGraph(graph.name, graph.arguments, protos, graph.results, control_results, graph.traced)
    new_graph.argument_attributes = graph.argument_attributes
    node_names = {proto.name for proto in protos}
    new_graph.annotations = {name: annotation for name, annotation in graph.annotations.items() if name in node_names}
    return new_graph


def _with_controls(proto: node_def_pb2.NodeDef, controls: list[str]) -> node_def_pb2.NodeDef:
    """Returns an op with exactly these control inputs."""
    tensor_names = data_inputs(proto)
    tensor_names += [f"^{name}" for name in controls if name != proto.name]
    if tensor_names == list(proto.input):
        return proto
    new_node = copy_node(proto, tensor_names)
    return new_node
