"""In a session's graph an op runs where something that is returned depends on it, in the bodies of loops as elsewhere.

TensorFlow's functional loops run everything with a side effect: the update of a model that is only evaluated, too.
"""

from __future__ import annotations

from tensorflow.core.framework import node_def_pb2

from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph
from tf_ipu_shim.lowering.functions import Functions


def drop_unneeded(functions: Functions) -> None:
    """Leaves out of marked loops what the values they carry on do not depend on."""
    for name in functions.reached():
        for node in functions[name].nodes:
            if node.op in vocabulary.LOOPS and vocabulary.NEEDED_ATTRIBUTE in node.proto.attr:
                body = functions[node.proto.attr["body"].func.name]
                needed = _needed_by_results(body)
                if needed is not body:
                    functions.add(needed)


def _needed_by_results(graph: FunctionGraph) -> FunctionGraph:
    """The same function with nothing but what its results need; itself where they need everything.

    TensorFlow hands each result through an op of its own that waits for everything with a side effect. What the
    results need of that is still waited for: it keeps the order of iterations.
    """
    by_data = {node.name for node in _waiting_for(graph, []).nodes}
    needed = [node.name for node in graph.control_returns if node.name in by_data]
    if len(needed) == len(graph.control_returns):
        return graph
    made = _waiting_for(graph, needed)
    made.argument_attributes = graph.argument_attributes
    kept = {node.name for node in made.nodes}
    made.marks = {name: mark for name, mark in graph.marks.items() if name in kept}
    return made


def _waiting_for(graph: FunctionGraph, controls: list[str]) -> FunctionGraph:
    """The same function with what its results, and these ops, need; results wait for these ops alone."""
    last = {producer.name for producer in map(graph.producer, graph.returns) if producer is not None}
    nodes = [(node.name, node.proto) for node in graph.nodes]
    protos = [_with_controls(proto, controls) if name in last else proto for name, proto in nodes]
    return FunctionGraph(graph.name, graph.arguments, protos, graph.results, controls, graph.traced)


def _with_controls(proto: node_def_pb2.NodeDef, controls: list[str]) -> node_def_pb2.NodeDef:
    """An op that waits for these and no others."""
    made = node_def_pb2.NodeDef()
    made.CopyFrom(proto)
    del made.input[:]
    made.input.extend(text for text in proto.input if text[0] != "^")
    made.input.extend(f"^{name}" for name in controls if name != proto.name)
    return made
