"""Removes unused resource handles from the results of branches.

Gradients have branches return them. XLA leaves them out of a branch's results, and ends the process where a branch of a
branch, or of a loop's body, returns one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.tf_private.protos import node_def_pb2


def drop_returned_handles(functions: Functions) -> None:
    """Removes results of branches that are unused handles."""
    seen: set[str] = set()
    left = [functions.entry]
    while left:  # callers first: what a branch no longer returns, nothing in it takes
        name = left.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        graph = functions[name]
        if not graph.ops.isdisjoint(vocabulary.BRANCHES):
            _drop_in_graph(functions, graph)
        left += graph.called


def _drop_in_graph(functions: Functions, graph: FunctionGraph) -> None:
    taken = {text for node in graph.nodes for text in node.inputs}.union(graph.returns)
    branches: dict[str, node_def_pb2.NodeDef] = {}
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op not in vocabulary.BRANCHES:
            continue
        texts = [f"{node.name}:output:{index}" for index in range(len(node.proto.attr["Tout"].list.type))]
        kept = _kept_results(graph, texts, taken)
        if len(kept) < len(texts):
            branches[node.name] = _with_results(functions, node, kept)
            renamed.update({texts[old]: texts[new] for new, old in enumerate(kept)})
    if branches:
        _rewrite(graph, branches, renamed)


def _kept_results(graph: FunctionGraph, texts: Sequence[str], taken: set[str]) -> list[int]:
    """Returns which results of a branch stay."""
    return [index for index, text in enumerate(texts) if text in taken or graph.type_of(text) != op_types.RESOURCE]


def _rewrite(graph: FunctionGraph, branches: dict[str, node_def_pb2.NodeDef], renamed: dict[str, str]) -> None:
    """Replaces branches and renames their results in consumers."""

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if node.name not in branches and renamed.keys().isdisjoint(node.inputs):
            return None
        made = copy_node(branches.get(node.name, node.proto))
        made.input[:] = [renamed.get(text, text) for text in made.input]
        return [made]

    graph.rewrite(rule)
    graph.results = [result._replace(tensor=renamed.get(result.tensor, result.tensor)) for result in graph.results]


def _with_results(functions: Functions, node: Node, kept: Sequence[int]) -> node_def_pb2.NodeDef:
    """Returns a branch with copied functions that return only some of the results."""
    made = copy_node(node.proto)
    types, shapes = node.proto.attr["Tout"].list.type, node.proto.attr["output_shapes"].list.shape
    made.attr["Tout"].list.type[:] = [types[index] for index in kept]
    if shapes:
        del made.attr["output_shapes"].list.shape[:]
        made.attr["output_shapes"].list.shape.extend(shapes[index] for index in kept)
    for attribute in op_types.function_attributes(node.op):
        for called in op_types.functions_in(made.attr[attribute]):
            copy = functions[called.name].copy(functions.fresh_name(called.name))
            copy.results = [copy.results[index] for index in kept]
            functions.add(copy)
            called.name = copy.name
    return made
