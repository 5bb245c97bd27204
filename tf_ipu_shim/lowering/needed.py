"""In a session's graph an op runs where something that is returned depends on it, in loops and branches as elsewhere.

TensorFlow's functional loops and branches run everything with a side effect: the update of a model that is only
evaluated, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorflow.core.framework import node_def_pb2

from tf_ipu_shim.lowering import op_types, vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.functions import Functions


def drop_unneeded(functions: Functions) -> None:
    """Leaves out of marked loops and branches what the values that they carry on or return do not depend on."""
    for name in functions.reached():
        for node in functions[name].nodes:
            for called in _called(node):
                whole = functions[called]
                needed = _needed_by_results(whole)
                if needed is not whole:
                    functions.add(needed)


def _called(node: Node) -> Sequence[str]:
    """Functions of a marked loop or branch."""
    if vocabulary.NEEDED_ATTRIBUTE not in node.proto.attr:
        return ()
    if node.op in vocabulary.LOOPS:
        return (node.proto.attr["body"].func.name,)
    return op_types.called_functions(node.proto) if node.op in vocabulary.BRANCHES else ()


def _needed_by_results(graph: FunctionGraph) -> FunctionGraph:
    """The same function with nothing but what its results need; itself where they need everything.

    TensorFlow hands each result through an op of its own that waits for everything with a side effect, and has all ops
    with a side effect wait for those before. That is no need; among what is needed it keeps the order.
    """
    asked = {node.name: [control.name for control in node.controls if _is_asked(node, control)] for node in graph.nodes}
    roots = [node.name for node in graph.nodes if vocabulary.ASKED_ATTRIBUTE in node.proto.attr]
    kept = {node.name for node in _waiting_for(graph, asked, roots).nodes}
    returned = [node.name for node in graph.control_returns if node.name in kept]
    if len(returned) == len(graph.control_returns) and len(kept) == len(graph.nodes):
        return graph
    made = _waiting_for(graph, _order_among(graph, kept), returned)
    made.argument_attributes = graph.argument_attributes
    made.marks = {name: mark for name, mark in graph.marks.items() if name in kept}
    return made


def _is_asked(node: Node, control: Node) -> bool:
    attributes = node.proto.attr  # asking for one that is not there would add it
    if vocabulary.WAITS_ATTRIBUTE not in attributes:
        return False
    return control.name.encode() in attributes[vocabulary.WAITS_ATTRIBUTE].list.s


def _order_among(graph: FunctionGraph, kept: set[str]) -> dict[str, list[str]]:
    """Which of the kept ops each one waits for, also through ops that are left out."""
    before: dict[str, dict[str, None]] = {}
    for node in graph.nodes:  # what they wait for comes first
        before[node.name] = {}
        for control in node.controls:
            before[node.name].update({control.name: None} if control.name in kept else before[control.name])
    return {name: list(names) for name, names in before.items()}


def _waiting_for(graph: FunctionGraph, controls: Mapping[str, list[str]], last: list[str]) -> FunctionGraph:
    """The same function with what its results, and the ops named last, need; results wait for these alone.

    Args:
        graph: the function.
        controls: what each op waits for.
        last: ops that results wait for.
    """
    results = {producer.name for producer in map(graph.producer, graph.returns) if producer is not None}
    protos = [_with_controls(node.proto, last if node.name in results else controls[node.name]) for node in graph.nodes]
    return FunctionGraph(graph.name, graph.arguments, protos, graph.results, last, graph.traced)


def _with_controls(proto: node_def_pb2.NodeDef, controls: list[str]) -> node_def_pb2.NodeDef:
    """An op that waits for these and no others."""
    texts = [text for text in proto.input if text[0] != "^"]
    texts += [f"^{name}" for name in controls if name != proto.name]
    if texts == list(proto.input):
        return proto
    made = node_def_pb2.NodeDef()
    made.CopyFrom(proto)
    made.input[:] = texts
    return made
