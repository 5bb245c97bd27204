"""Finds the tensors that become seeds of random ops, through calls, branches and loops.

XLA's compiler computes random ops of constant seeds by TensorFlow's kernels, which draw other numbers. It inlines
calls, so a seed returned by a called function is a constant to it, but a seed returned by a branch is not.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import result_index
from tf_ipu_shim.compiler.passes.constant_values import CONSTANT_SOURCES
from tf_ipu_shim.tf_private.protos import types_pb2

_TYPES = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64, types_pb2.DT_UINT32, types_pb2.DT_UINT64})
# Ops that seeds may be computed by, with the inputs that XLA must know when it compiles.
_COMPILE_TIME_INPUTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("ExpandDims", "Reshape", "ReverseV2", "Squeeze", "Transpose"), (1,)),
    **dict.fromkeys(("Fill",), (0,)),
    **dict.fromkeys(("Slice", "StridedSlice", "Tile", "BroadcastTo", "Sum", "Max", "Min", "Prod"), (1, 2, 3)),
    **dict.fromkeys(("GatherV2",), (2,)),
    **vocabulary.LAUNCHED,
}


class SeedUses:
    """The inputs of ops, and the results of functions, from which seeds are computed.

    Args:
        functions: the program when this object is created.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._callers: dict[str, list[tuple[FunctionGraph, Node]]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._inputs: set[tuple[str, str, int]] = set()
        self._results: set[tuple[str, int]] = set()
        self._pending: list[tuple[FunctionGraph, str]] = []
        drawing: list[tuple[FunctionGraph, Node]] = []
        for graph in [functions[name] for name in functions.reached()]:
            for node in graph.nodes:
                if node.op in vocabulary.LAUNCHED:
                    drawing.append((graph, node))
                for called in filter(functions.__contains__, op_types.called_functions(node.proto)):
                    self._callers.setdefault(called, []).append((graph, node))
        for graph, node in drawing:
            self._follow_inputs(graph, node)
        while self._pending:
            self._follow(*self._pending.pop())

    def is_seed(self, graph: FunctionGraph, node: Node, index: int, tensor_name: str) -> bool:
        """Returns whether an op's input is a seed from a branch or list, or an operand of one."""
        return (graph.name, node.name, index) in self._inputs and self._is_computed(graph, tensor_name)

    def is_returned_seed(self, graph: FunctionGraph, index: int) -> bool:
        """Returns whether a function's result is a seed from a branch or list."""
        return (graph.name, index) in self._results and self._is_computed(graph, graph.returns[index])

    def _is_computed(self, graph: FunctionGraph, tensor_name: str) -> bool:
        node = graph.producer(tensor_name)
        while node is not None and node.op == "Identity":
            tensor_name = node.inputs[0]
            node = graph.producer(tensor_name)
        if node is None or node.op not in vocabulary.CALLS:
            return node is not None and node.op in CONSTANT_SOURCES
        index = result_index(tensor_name)
        called = (self._functions[name] for name in op_types.called_functions(node.proto))
        return any(self._is_computed(function, function.returns[index]) for function in called)

    def _follow_inputs(self, graph: FunctionGraph, node: Node) -> None:
        compile_time_inputs = _COMPILE_TIME_INPUTS.get(node.op, ())
        for index, tensor_name in enumerate(node.inputs):
            if (
                index not in compile_time_inputs
                and graph.type_of(tensor_name) in _TYPES
                and (node.op, index) != _concat_axis(node)
            ):
                self._add_input(graph, node, index)

    def _add_input(self, graph: FunctionGraph, node: Node, index: int) -> None:
        self._inputs.add((graph.name, node.name, index))
        self._add(graph, node.inputs[index])

    def _add_result(self, name: str, index: int) -> None:
        self._results.add((name, index))
        self._add(self._functions[name], self._functions[name].returns[index])

    def _add(self, graph: FunctionGraph, tensor_name: str) -> None:
        if (graph.name, tensor_name) not in self._seen:
            self._seen.add((graph.name, tensor_name))
            self._pending.append((graph, tensor_name))

    def _follow(self, graph: FunctionGraph, tensor_name: str) -> None:
        """Adds the operands from which a tensor is computed."""
        node = graph.producer(tensor_name)
        if node is None:
            index = list(graph.arguments).index(tensor_name)
            for caller, call in self._callers.get(graph.name, ()):
                self._add_input(caller, call, index + (call.op in vocabulary.BRANCHES))
                if call.op in vocabulary.LOOPS:
                    self._add_result(call.proto.attr["body"].func.name, index)
        elif node.op in vocabulary.LOOPS:
            self._add_result(node.proto.attr["body"].func.name, result_index(tensor_name))
            self._add_input(graph, node, result_index(tensor_name))
        elif node.op in vocabulary.FUNCTION_ATTRIBUTES:
            for name in filter(self._functions.__contains__, op_types.called_functions(node.proto)):
                self._add_result(name, result_index(tensor_name))
        elif node.op not in vocabulary.LAUNCHED:
            self._follow_inputs(graph, node)


def _concat_axis(node: Node) -> tuple[str, int]:
    return "ConcatV2", len(node.inputs) - 1
