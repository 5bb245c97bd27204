"""Replaces a branch's missing TensorList (`FakeParam`) by an empty list like the other branch's.

The gradient of a loop in one branch of `tf.cond` reads the lists in which the loop keeps its values. TensorFlow has the
other branches return a FakeParam in the place of each, and XLA has none of lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tf_ipu_shim.compiler.ir import op_types, tensor_lists, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node, result_index
from tf_ipu_shim.tf_private.protos import node_def_pb2

_FAKE = "FakeParam"
_LIST_UPDATES = frozenset({"TensorListPushBack", "TensorListSetItem"})  # return the list that is their first input


def replace_missing_lists(functions: Functions) -> None:
    """Replaces such FakeParams; those whose list is unknown stay and are refused later."""
    replaced_lists: dict[str, dict[str, Sequence[node_def_pb2.NodeDef]]] = {"": {}}
    while replaced_lists and functions.with_ops(frozenset({_FAKE})):  # inner branches first: outer ones return theirs
        finder = _Finder(functions)
        replaced_lists = {
            name: replacements for name in functions.reached() if (replacements := finder.replacements(functions[name]))
        }
        for name, instead in replaced_lists.items():
            functions[name].rewrite(lambda node, instead=instead: instead.get(node.name))  # type: ignore[misc]


class _Finder:
    """Finds lists that another branch returns."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._calls: dict[str, list[tuple[FunctionGraph, Node]]] = {}
        for graph in map(functions.__getitem__, functions.reached()):
            for node in graph.nodes:
                for called in op_types.called_functions(node.proto):
                    self._calls.setdefault(called, []).append((graph, node))

    def replacements(self, graph: FunctionGraph) -> dict[str, Sequence[node_def_pb2.NodeDef]]:
        """Maps each FakeParam that a branch returns for a list to ops that make an empty list."""
        empty_lists: dict[str, Sequence[node_def_pb2.NodeDef]] = {}
        for index, tensor_name in enumerate(graph.returns):
            fake = graph.producer(tensor_name)
            if fake is None or fake.op != _FAKE or graph.type_of(tensor_name) != op_types.VARIANT:
                continue
            producer = next(
                (
                    producer
                    for sibling_branch in self._sibling_branches(graph)
                    if (producer := self._creating_ops(sibling_branch, sibling_branch.returns[index]))
                ),
                None,
            )
            if producer is not None:
                empty_lists[fake.name] = _copy_ops(producer, fake.name)
        return empty_lists

    def _sibling_branches(self, graph: FunctionGraph) -> Iterator[FunctionGraph]:
        """Yields the sibling branches of a branch."""
        for _, node in self._calls.get(graph.name, ()):
            if node.op in vocabulary.BRANCHES:
                names = op_types.called_functions(node.proto)
                yield from (self._functions[name] for name in names if name in self._functions and name != graph.name)

    def _creating_ops(self, graph: FunctionGraph, tensor_name: str) -> list[node_def_pb2.NodeDef] | None:
        """Returns the ops that create a list, with their constants, or None."""
        while (node := graph.producer(tensor_name)) is not None:
            if node.op in tensor_lists.MAKE:
                constants = [self._constant(graph, operand) for operand in node.inputs]
                return None if None in constants else [*constants, node.proto]  # type: ignore[list-item]
            if node.op in vocabulary.IDENTITIES or node.op in _LIST_UPDATES:
                tensor_name = node.inputs[0]
            elif node.op in vocabulary.LOOPS:  # which returns what it was given, with other elements
                tensor_name = node.inputs[result_index(tensor_name)]
            else:
                return self._returned_list(node, result_index(tensor_name))
        return None

    def _returned_list(self, node: Node, index: int) -> list[node_def_pb2.NodeDef] | None:
        """Returns the list that a call or branch returns."""
        for name in op_types.called_functions(node.proto):
            if name in self._functions:
                inner = self._functions[name]
                producer = self._creating_ops(inner, inner.returns[index])
                if producer is not None:
                    return producer
        return None

    def _constant(self, graph: FunctionGraph, tensor_name: str) -> node_def_pb2.NodeDef | None:
        """Returns the constant that a tensor is, also through function arguments, or None."""
        while (node := graph.producer(tensor_name)) is not None and node.op in vocabulary.IDENTITIES:
            tensor_name = node.inputs[0]
        if node is not None:
            return node.proto if node.op == "Const" else None
        calls = self._calls.get(graph.name, [])
        if len(calls) != 1 or calls[0][1].op in vocabulary.LOOPS:
            return None
        caller, call = calls[0]
        return self._constant(caller, call.function_inputs[list(graph.arguments).index(tensor_name)])


def _copy_ops(nodes: Sequence[node_def_pb2.NodeDef], name: str) -> list[node_def_pb2.NodeDef]:
    """Copies ops and prefixes their names with another op's name; the last has that name and returns the list."""
    copies = []
    for index, proto in enumerate(nodes):
        copy = copy_node(proto)
        copy.name = f"{name}/{index}"
        del copy.input[:]
        copies.append(copy)
    copies[-1].input.extend(f"{constant.name}:output:0" for constant in copies[:-1])
    returned = node_def_pb2.NodeDef(name=name, op="Identity", input=[f"{copies[-1].name}:handle:0"])
    returned.attr["T"].type = op_types.VARIANT
    return [*copies, returned]
