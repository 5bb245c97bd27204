"""Forwards resource handles that pass unchanged through calls, branches and loops to their consumers.

A loop exports all its variables, so TensorFlow's gradients may read a variable from the loop's results instead of its
inputs. Passes need to know the variable of such an op: it decides the IPU, and the counted memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node, producer_name, result_index
from tf_ipu_shim.tf_private.protos import node_def_pb2


def forward_handles(functions: Functions) -> None:
    """Makes consumers of a returned handle use the handle that was passed in."""
    handed = _ForwardedHandles(functions)
    for name in functions.reached():
        handed.replace_in(functions[name])


_FORWARDING = vocabulary.IDENTITIES | vocabulary.LOOPS | vocabulary.CALLS | vocabulary.BRANCHES


class _ForwardedHandles:
    """Finds which function results are arguments returned unchanged."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._arguments: dict[str, list[int | None]] = {}

    def replace_in(self, graph: FunctionGraph) -> None:
        """Makes a function's ops and results use the original handles."""
        renamed = {
            tensor_name: source
            for tensor_name in {tensor_name for node in graph.nodes for tensor_name in node.inputs}.union(graph.returns)
            if (source := self._source(graph, tensor_name)) != tensor_name
        }
        if not renamed:
            return

        def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
            if renamed.keys().isdisjoint(node.inputs):
                return None
            new_node = copy_node(node.proto)
            # It still comes after the op that returned the handle, which may have written to the variable.
            before = dict.fromkeys(producer_name(tensor_name) for tensor_name in node.inputs if tensor_name in renamed)
            new_node.input.extend(f"^{name}" for name in before if f"^{name}" not in new_node.input)
            return [new_node]

        graph.rewrite(rule, renamed=renamed)

    def _source(self, graph: FunctionGraph, tensor_name: str) -> str:
        """Returns the original tensor of a handle; other tensors are their own source."""
        while (node := graph.producer(tensor_name)) is not None and node.op in _FORWARDING:
            if graph.type_of(tensor_name) != op_types.RESOURCE:
                return tensor_name
            if node.op in vocabulary.IDENTITIES:
                tensor_name = node.inputs[0]
                continue
            argument = self._forwarded_input(node, result_index(tensor_name))
            if argument is None:
                return tensor_name
            tensor_name = node.inputs[argument]
        return tensor_name

    def _forwarded_input(self, node: Node, index: int) -> int | None:
        """Returns the input that a result of a function-running op equals, or None."""
        if node.op in vocabulary.LOOPS:
            # An argument that is passed on from another place is only that of the first iteration.
            forwarded = self._forwarded_arguments(node.proto.attr["body"].func.name)
            return index if index < len(forwarded) and forwarded[index] == index else None
        if node.op not in vocabulary.CALLS | vocabulary.BRANCHES:
            return None
        called = [self._forwarded_arguments(name) for name in op_types.called_functions(node.proto)]
        first = called[0][index] if called and all(index < len(forwarded) for forwarded in called) else None
        if first is None or any(forwarded[index] != first for forwarded in called):
            return None
        return first + 1 if node.op in vocabulary.BRANCHES else first

    def _forwarded_arguments(self, name: str) -> list[int | None]:
        if name not in self._functions:
            return []
        if name not in self._arguments:
            graph = self._functions[name]
            self._arguments[name] = [None] * len(graph.results)  # for recursive functions
            argument_index = {argument: index for index, argument in enumerate(graph.arguments)}
            self._arguments[name] = [
                argument_index.get(self._source(graph, tensor_name)) for tensor_name in graph.returns
            ]
        return self._arguments[name]
