"""Finds the variables that a function writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.tf_private.protos import function_pb2

READS = frozenset("ReadVariableOp ResourceGather ResourceGatherNd VariableShape VarIsInitializedOp".split())


def written_arguments(function: str, library: Mapping[str, function_pb2.FunctionDef]) -> set[int]:
    """Returns which arguments are variables that a function, or one it calls, writes."""
    return _Written(library).written_by(function)


class _Written:
    def __init__(self, library: Mapping[str, function_pb2.FunctionDef]) -> None:
        self._library = library
        self._known: dict[str, set[int]] = {}

    def written_by(self, function: str) -> set[int]:
        if function not in self._known:
            self._known[function] = set()  # for recursive functions
            if function in self._library:
                self._known[function] = self._find_written(FunctionGraph.parse(self._library[function]))
        return self._known[function]

    def _find_written(self, graph: FunctionGraph) -> set[int]:
        argument_of = {name: index for index, name in enumerate(graph.arguments)}  # tensor -> the argument it is
        written: set[int] = set()
        for node in graph.nodes:
            argument_indices = [argument_of.get(tensor_name) for tensor_name in node.inputs]
            if node.op in ("Identity", "IdentityN"):
                for index, argument in enumerate(argument_indices):
                    if argument is not None:
                        argument_of[f"{node.name}:output:{index}"] = argument
            elif node.op in vocabulary.FUNCTION_ATTRIBUTES:
                written |= self._through_call(node, argument_indices)
            elif node.op not in READS:
                resources = [kind == op_types.RESOURCE for kind in op_types.input_types(node.proto)]
                written |= {a for a, is_resource in zip(argument_indices, resources) if a is not None and is_resource}
        return written

    def _through_call(self, node: Node, argument_indices: Sequence[int | None]) -> set[int]:
        if node.op in vocabulary.BRANCHES:
            argument_indices = argument_indices[1:]  # the first one chooses the branch
        inner = {index for called in op_types.called_functions(node.proto) for index in self.written_by(called)}
        return {argument for index, argument in enumerate(argument_indices) if argument is not None and index in inner}
