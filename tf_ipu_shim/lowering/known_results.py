"""Results of functions that are known beforehand become constants where the functions are called.

XLA must know axes, shapes and permutations when it compiles. A gradient takes those of its forward function from that
function's results, and where the call stands in a branch, XLA does not see that they are constants: it compiles with
the largest value that they could have (a shape whose size it calls dynamic), which gives a wrong gradient or an error
about shapes. Example: the gradient of `tf.gather(x, indices, axis=1)` in a `tf.function` called in a `tf.cond`. An IPU
has no dynamic shapes, so that such numbers are constants there, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow.core.framework import node_def_pb2, types_pb2

from tf_ipu_shim.lowering import op_types, vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.functions import Functions

_TYPES = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64, types_pb2.DT_BOOL})
_MOST_ELEMENTS = 256  # shapes and axes have few
_ANY = node_def_pb2.NodeDef(op="FakeParam")  # what a branch gives that the other one makes; nobody looks at it


def make_constants(functions: Functions) -> None:
    """Replaces results of calls and branches that are known beforehand.

    Args:
        functions: the program; changed where there are any.
    """
    known = _Known(functions)
    for name in functions.reached():
        known.replace_in(functions[name])


class _Known:
    """The results of functions that are constants."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._results: dict[str, list[node_def_pb2.NodeDef | None]] = {}

    def replace_in(self, graph: FunctionGraph) -> None:
        """Has what takes a known result of a call take a constant."""
        constants: dict[str, node_def_pb2.NodeDef] = {}
        for node in graph.nodes:
            for index, value in enumerate(self._of_node(graph, node)):
                if value is not None and value is not _ANY:
                    made = node_def_pb2.NodeDef()
                    made.CopyFrom(value)
                    made.name = f"{node.name}/result_{index}"
                    del made.input[:]
                    constants[f"{node.name}:output:{index}"] = made
        used = {text for node in graph.nodes for text in node.inputs}.union(graph.returns).intersection(constants)
        if not used:
            return

        def renamed(text: str) -> str:
            return f"{constants[text].name}:output:0" if text in used else text

        def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
            if used.isdisjoint(node.inputs):
                return None
            made = node_def_pb2.NodeDef()
            made.CopyFrom(node.proto)
            made.input[:] = [renamed(text) for text in node.proto.input]
            return [made]

        graph.rewrite(rule, before=[constants[text] for text in constants if text in used])
        graph.results = [result._replace(tensor=renamed(result.tensor)) for result in graph.results]

    def _of_node(self, graph: FunctionGraph, node: Node) -> Sequence[node_def_pb2.NodeDef | None]:
        """For each result of an op that runs functions, its value where that is known."""
        if node.op not in vocabulary.CALLS | vocabulary.BRANCHES:
            return ()
        called = [self._of_function(name) for name in op_types.called_functions(node.proto) if name in self._functions]
        return [_common(values) for values in zip(*called)]

    def _of_function(self, name: str) -> list[node_def_pb2.NodeDef | None]:
        if name not in self._results:
            graph = self._functions[name]
            self._results[name] = [None] * len(graph.results)  # for recursive functions
            self._results[name] = [self._of_tensor(graph, text) for text in graph.returns]
        return self._results[name]

    def _of_tensor(self, graph: FunctionGraph, text: str) -> node_def_pb2.NodeDef | None:
        node = graph.producer(text)
        while node is not None and node.op == "Identity":
            text = node.inputs[0]
            node = graph.producer(text)
        if node is None or graph.type_of(text) not in _TYPES:
            return None
        if node.op == "FakeParam":
            return _ANY
        if node.op == "Const":
            return node.proto if _elements(node.proto) <= _MOST_ELEMENTS else None
        values = self._of_node(graph, node)
        index = int(text.rsplit(":", 1)[1])
        return values[index] if index < len(values) else None


def _elements(constant: node_def_pb2.NodeDef) -> int:
    elements = 1
    for dimension in constant.attr["value"].tensor.tensor_shape.dim:
        elements *= dimension.size
    return elements


def _common(values: Sequence[node_def_pb2.NodeDef | None]) -> node_def_pb2.NodeDef | None:
    """The value that all branches give, those left out that give what nobody looks at."""
    given = [value for value in values if value is not _ANY]
    if not given:
        return _ANY
    first = given[0]
    if first is None or any(
        value is None or value.attr["value"] != first.attr["value"] or value.attr["dtype"] != first.attr["dtype"]
        for value in given
    ):
        return None
    return first
