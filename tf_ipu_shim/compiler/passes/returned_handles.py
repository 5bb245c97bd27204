"""Removes unused resource handles from the results of branches.

Gradients have branches return them. XLA leaves them out of a branch's results, and ends the process if a branch of a
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
    remaining = [functions.entry]
    while remaining:  # callers first: what a branch no longer returns, nothing in it takes
        name = remaining.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        graph = functions[name]
        if not graph.ops.isdisjoint(vocabulary.BRANCHES):
            _drop_in_graph(functions, graph)
        remaining += graph.called


def _drop_in_graph(functions: Functions, graph: FunctionGraph) -> None:
    used = {tensor_name for node in graph.nodes for tensor_name in node.inputs}.union(graph.returns)
    branches: dict[str, node_def_pb2.NodeDef] = {}
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op not in vocabulary.BRANCHES:
            continue
        tensor_names = [f"{node.name}:output:{index}" for index in range(len(node.proto.attr["Tout"].list.type))]
        retained = _kept_results(graph, tensor_names, used)
        if len(retained) < len(tensor_names):
            branches[node.name] = _with_results(functions, node, retained)
            renamed.update({tensor_names[old]: tensor_names[new] for new, old in enumerate(retained)})
    if branches:
        graph.rewrite(lambda node: [branches[node.name]] if node.name in branches else None, renamed=renamed)


def _kept_results(graph: FunctionGraph, tensor_names: Sequence[str], used: set[str]) -> list[int]:
    """Returns which results of a branch stay."""
    return [
        index
        for index, tensor_name in enumerate(tensor_names)
        if tensor_name in used or graph.type_of(tensor_name) != op_types.RESOURCE
    ]


def _with_results(functions: Functions, node: Node, retained: Sequence[int]) -> node_def_pb2.NodeDef:
    """Returns a branch with copied functions that return only some of the results."""
    new_node = copy_node(node.proto)
    types, shapes = node.proto.attr["Tout"].list.type, node.proto.attr["output_shapes"].list.shape
    new_node.attr["Tout"].list.type[:] = [types[index] for index in retained]
    if shapes:
        del new_node.attr["output_shapes"].list.shape[:]
        new_node.attr["output_shapes"].list.shape.extend(shapes[index] for index in retained)
    for attribute in op_types.function_attributes(node.op):
        for called in op_types.functions_in(new_node.attr[attribute]):
            copy = functions[called.name].copy(functions.fresh_name(called.name))
            copy.results = [copy.results[index] for index in retained]
            functions.add(copy)
            called.name = copy.name
    return new_node
