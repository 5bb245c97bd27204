"""Finds tensors with constant values through calls, branches, loops and TensorLists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import result_index
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_EMPTY_LIST, _PUSH, _POP = "EmptyTensorList", "TensorListPushBack", "TensorListPopBack"
_CALLS = vocabulary.CALLS | vocabulary.BRANCHES
CONSTANT_SOURCES = _CALLS | {_POP}
"""The ops whose results can be known although they are no constants."""
_TYPES = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64, types_pb2.DT_BOOL, op_types.VARIANT})
_MAX_ELEMENTS = 256  # shapes and axes have few
_UNDEFINED = node_def_pb2.NodeDef(op="FakeParam")  # stands for a result of the other branch; no one reads it


class _List(NamedTuple):
    """A TensorList that holds the same value at each index, of any length."""

    element: _Value


# A constant op, or a list of them. None if a tensor is not known.
_Value = Union[node_def_pb2.NodeDef, _List, None]
_EMPTY = _List(_UNDEFINED)


class ConstantValues:
    """Finds the constant tensors of a program.

    Args:
        functions: the program, unchanged while tensors are looked up.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._results: dict[str, list[_Value]] = {}
        self._arguments: dict[tuple[str, str], _Value] = {}
        self._calls: dict[str, list[tuple[FunctionGraph, Node]]] | None = None

    def constants_of(self, graph: FunctionGraph, node: Node) -> Iterator[tuple[str, node_def_pb2.NodeDef]]:
        """Yields the constant results of a call or branch, or the constant element that an op reads from a list."""
        values: Sequence[_Value] = ()
        if node.op == _POP:
            values = [self._tensor_value(graph, f"{node.name}:tensor:0")]
        elif node.op in _CALLS:
            values = self._call_values(node)
        name = "tensor" if node.op == _POP else "output"
        for index, value in enumerate(values):
            if isinstance(value, node_def_pb2.NodeDef) and value is not _UNDEFINED:
                yield f"{node.name}:{name}:{index}", value

    def _tensor_value(self, graph: FunctionGraph, tensor_name: str) -> _Value:
        node = graph.producer(tensor_name)
        while node is not None and node.op == "Identity":
            tensor_name = node.inputs[0]
            node = graph.producer(tensor_name)
        if graph.type_of(tensor_name) not in _TYPES:
            return None
        if node is None:
            return self._argument_value(graph, tensor_name)
        if node.op == "FakeParam":
            return _UNDEFINED
        if node.op == "Const":
            return node.proto if _elements(node.proto) <= _MAX_ELEMENTS else None
        if node.op in (_EMPTY_LIST, _PUSH, _POP):
            return self._list_value(graph, node, tensor_name)
        return self._result_value(graph, node, result_index(tensor_name))

    def _list_value(self, graph: FunctionGraph, node: Node, tensor_name: str) -> _Value:
        if node.op == _EMPTY_LIST:
            return _EMPTY
        state = self._tensor_value(graph, node.inputs[0])
        if not isinstance(state, _List):
            return None
        if node.op == _PUSH:
            return _common([state, _filled_list(self._tensor_value(graph, node.inputs[1]))])
        return state.element if tensor_name == f"{node.name}:tensor:0" else state

    def _result_value(self, graph: FunctionGraph, node: Node, index: int) -> _Value:
        """Returns the value of a call, branch or loop result."""
        if node.op in vocabulary.LOOPS:
            return self._loop_value(graph, node, index)
        values = self._call_values(node) if node.op in vocabulary.FUNCTION_ATTRIBUTES else ()
        return values[index] if index < len(values) else None

    def _call_values(self, node: Node) -> list[_Value]:
        called = [
            self._function_values(name) for name in op_types.called_functions(node.proto) if name in self._functions
        ]
        return [_common(values) for values in zip(*called)]

    def _function_values(self, name: str) -> list[_Value]:
        if name not in self._results:
            graph = self._functions[name]
            self._results[name] = [None] * len(graph.results)  # for recursive functions
            self._results[name] = [self._tensor_value(graph, tensor_name) for tensor_name in graph.returns]
        return self._results[name]

    def _loop_value(self, graph: FunctionGraph, loop: Node, index: int) -> _Value:
        """Returns the list value of a loop that pushes one value per iteration or only pops."""
        body = self._functions[loop.proto.attr["body"].func.name]
        argument, last = list(body.arguments)[index], body.producer(body.returns[index])
        if body.arguments[argument] != op_types.VARIANT:
            return None
        start = self._tensor_value(graph, loop.inputs[index])
        if last is not None and last.op == _PUSH and last.inputs[0] == argument:
            return _common([start, _filled_list(self._tensor_value(body, last.inputs[1]))])
        return start if _is_only_popped(body, index) else None

    def _argument_value(self, graph: FunctionGraph, argument: str) -> _Value:
        """Returns the list value of an argument if its function has one caller; XLA finds constants itself."""
        key = (graph.name, argument)
        if key not in self._arguments:
            self._arguments[key] = None  # for recursive functions
            calls = self._calls_of(graph.name)
            if graph.arguments[argument] == op_types.VARIANT and len(calls) == 1:
                ((caller, node),) = calls
                index = list(graph.arguments).index(argument)
                if node.op not in vocabulary.LOOPS or _is_only_popped(self._body_of(node), index):
                    self._arguments[key] = self._tensor_value(caller, node.function_inputs[index])
        return self._arguments[key]

    def _body_of(self, loop: Node) -> FunctionGraph:
        return self._functions[loop.proto.attr["body"].func.name]

    def _calls_of(self, name: str) -> list[tuple[FunctionGraph, Node]]:
        """Returns the call sites of a function, each with the graph that contains it."""
        if self._calls is None:
            self._calls = {}
            for graph in [self._functions[reached] for reached in self._functions.reached()]:
                for node in graph.nodes:
                    for called in op_types.called_functions(node.proto):
                        self._calls.setdefault(called, []).append((graph, node))
        return self._calls.get(name, [])


def _is_only_popped(body: FunctionGraph, index: int) -> bool:
    """Returns whether a loop's body only pops from a list or passes it on."""
    tensor_name = body.returns[index]
    node = body.producer(tensor_name)
    while node is not None and node.op in (_POP, "Identity"):
        tensor_name = node.inputs[0]
        node = body.producer(tensor_name)
    return tensor_name == list(body.arguments)[index]


def _filled_list(element: _Value) -> _Value:
    return None if element is None else _List(element)


def _elements(constant: node_def_pb2.NodeDef) -> int:
    elements = 1
    for dimension in constant.attr["value"].tensor.tensor_shape.dim:
        elements *= dimension.size
    return elements


def _common(values: Sequence[_Value]) -> _Value:
    """Returns the value common to all, ignoring unused ones; None if they differ."""
    known_values = [value for value in values if value is not _UNDEFINED]
    if not known_values:
        return _UNDEFINED
    lists = [value for value in known_values if isinstance(value, _List)]
    if lists:
        element = _common([value.element for value in lists]) if len(lists) == len(known_values) else None
        return _filled_list(element)
    return _same_constant(known_values)


def _same_constant(values: Sequence[_Value]) -> _Value:
    """Returns the constant that all of these are, or None."""
    constants = [value for value in values if isinstance(value, node_def_pb2.NodeDef)]
    if len(constants) < len(values):
        return None
    first = constants[0]
    same = all(value.attr[name] == first.attr[name] for value in constants for name in ("value", "dtype"))
    return first if same else None
