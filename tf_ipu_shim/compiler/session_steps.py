"""Extracts the part of a session step's graph that a device compiles, as a function with its arguments."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import TensorName, awaited_nodes, data_inputs
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_EDGE = re.compile(r"^edge_\d+_")
_FED = re.compile(r"^_arg_(.*)_\d+_\d+$")
_serial = itertools.count()


class _Tensor(NamedTuple):
    """A result of an op, by the op's name and the result's index."""

    producer: str
    position: int


class _Op:
    """A node with its inputs, parsed once.

    Attributes:
        seen_inputs: messages about the inputs that the op had when it ran; empty if it did not.
    """

    def __init__(self, node: node_def_pb2.NodeDef, seen_inputs: Sequence[Any]) -> None:
        self.node, self.seen_inputs = node, seen_inputs
        names = map(TensorName.parse, data_inputs(node))
        self.inputs = [_Tensor(name.producer, name.position) for name in names]
        self.controls = list(awaited_nodes(node))

    @functools.cached_property
    def results(self) -> list[tuple[str, int]]:
        """Returns the name within a function and the dtype of each result."""
        types = op_types.output_types(self.node)
        return [
            (f"{self.node.name}:{output}:{index}", kind)
            for output, kinds in types.items()
            for index, kind in enumerate(kinds)
        ]

    def is_list(self, index: int) -> bool:
        """Returns whether a result is a TensorList."""
        return index < len(self.results) and self.results[index][1] == types_pb2.DT_VARIANT


@dataclasses.dataclass(frozen=True)
class StepPart:
    """Ops of a session step as a function.

    Args:
        functions: the function and the graph's functions, by name.
        function: the function's name; empty if it cannot be written, as the part is empty or an argument unknown.
        arguments: messages about the function's arguments.
        ops_run: the types of its ops that ran.
    """

    functions: Mapping[str, function_pb2.FunctionDef]
    function: str
    arguments: Sequence[Any]
    ops_run: frozenset[str]


def extract_part(step: Any, included: Iterable[str], function_name: str) -> StepPart:
    """Returns ops of a step as a function, without ops that pass TensorLists across its boundary.

    Args:
        step: the message with the step's graph, and with the inputs of the ops that ran.
        included: names of the ops.
        function_name: how the function's name begins.
    """
    seen = {node.node: node.inputs for node in step.nodes}
    ops = {node.name: _Op(node, seen.get(node.name, ())) for node in step.graph.node}
    part = _without_crossing_lists(ops, included)
    functions = {function.signature.name: function for function in step.graph.library.function}
    ops_run = frozenset(op.node.op for name, op in part.items() if name in seen)
    arguments = _find_arguments(ops, part)
    if not part or any(argument.value is None for argument in arguments.values()):
        return StepPart(functions, "", (), ops_run)
    # Fed values come before variables, as in programs that a script compiles.
    in_order = sorted(arguments.items(), key=lambda item: item[1].value.type == types_pb2.DT_RESOURCE)
    name = f"{function_name}_{next(_serial)}"
    function = _write_function(name, ops, part, dict(in_order))
    values = [argument.value for _, argument in in_order]
    return StepPart({**functions, name: function}, name, values, ops_run)


def _without_crossing_lists(ops: Mapping[str, _Op], included: Iterable[str]) -> dict[str, _Op]:
    """Returns a part's ops without ops that pass TensorLists across its boundary.

    This happens if TensorFlow decomposes a session's loop: it then passes lists around the loop.
    """
    part = {name: ops[name] for name in included}
    lists = [
        (tensor.producer, name)
        for name, op in ops.items()
        for tensor in op.inputs
        if tensor.producer in part or name in part
        if ops[tensor.producer].is_list(tensor.position)
    ]
    crossing = lists
    while crossing:
        crossing = [pair for pair in lists if len({*pair} & part.keys()) == 1]
        for pair in crossing:
            for name in pair:
                part.pop(name, None)
    return part


@dataclasses.dataclass
class _Argument:
    """An input of the function: the argument's name and the known properties of its first value."""

    name: str
    value: Any = None


def _find_arguments(ops: Mapping[str, _Op], part: Mapping[str, _Op]) -> dict[_Tensor, _Argument]:
    arguments: dict[_Tensor, _Argument] = {}
    names: set[str] = set()
    for op in part.values():
        for index, tensor in enumerate(op.inputs):
            if tensor.producer in part:
                continue
            if tensor not in arguments:
                arguments[tensor] = _Argument(_argument_name(ops[tensor.producer].node, names))
            argument, seen = arguments[tensor], op.seen_inputs
            if argument.value is None and index < len(seen) and seen[index].type != types_pb2.DT_INVALID:
                argument.value = seen[index]
    return arguments


def _argument_name(node: node_def_pb2.NodeDef, used: set[str]) -> str:
    """Returns an unused, readable name of a tensor from outside the part."""
    base_name = _EDGE.sub("", node.attr["tensor_name"].s.decode()) if "tensor_name" in node.attr else node.name
    fed = _FED.match(base_name)
    plain = re.sub(r"[^a-z0-9_]", "_", (fed.group(1) if fed else base_name).lower()).lstrip("_0123456789") or "argument"
    numbered = (f"{plain}_{suffix}" for suffix in itertools.count(1))
    name = next(name for name in itertools.chain([plain], numbered) if name not in used)
    used.add(name)
    return name


def _write_function(
    name: str, ops: Mapping[str, _Op], part: Mapping[str, _Op], arguments: Mapping[_Tensor, _Argument]
) -> function_pb2.FunctionDef:
    def tensor_name(tensor: _Tensor) -> str:
        return arguments[tensor].name if tensor in arguments else part[tensor.producer].results[tensor.position][0]

    function = function_pb2.FunctionDef()
    function.signature.name = name
    for argument in arguments.values():
        function.signature.input_arg.add(name=argument.name, type=argument.value.type)
    for op in part.values():
        new_node = function.node_def.add()
        new_node.CopyFrom(op.node)
        new_node.input[:] = map(tensor_name, op.inputs)
        new_node.input.extend(f"^{control}" for control in op.controls if control in part)
        if op_types.is_stateful(op.node.op) and op.node.op != "ReadVariableOp":
            function.signature.control_output.append(op.node.name)
            function.control_ret[op.node.name] = op.node.name
    used_outside = {tensor for user, op in ops.items() if user not in part for tensor in op.inputs}
    for index, tensor in enumerate(sorted(tensor for tensor in used_outside if tensor.producer in part)):
        result = f"result_{index}"
        function.signature.output_arg.add(name=result, type=part[tensor.producer].results[tensor.position][1])
        function.ret[result] = tensor_name(tensor)
    return function
