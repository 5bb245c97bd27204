"""Converts TensorFlow 1 function calls (ops typed by a function's name) to call ops.

They become ordinary calls, which every pass and XLA recognise. Such a function always runs its ops with side effects.
The call ends when they and the reads of variables have run. Both are named as ops that must run. Else a write after the
call could precede a read in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tf_ipu_shim.compiler.ir import calls, op_types
from tf_ipu_shim.compiler.ir.node_defs import TensorName, copy_function, producer_name
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.compiler.passes.dead_code_elimination import has_effect
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


def convert_legacy_calls(library: Mapping[str, function_pb2.FunctionDef]) -> dict[str, function_pb2.FunctionDef]:
    """Returns functions by name; their legacy calls are call ops."""
    converted = {name: _with_calls(function, library) for name, function in library.items()}
    for name in {node.op for function in library.values() for node in function.node_def if node.op in library}:
        converted[name] = _with_control_outputs(converted[name])
    return converted


def _with_control_outputs(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Returns the function with its side effects, and reads that results need, as control outputs."""
    function_copy = copy_function(function)
    nodes = {node.name: node for node in function_copy.node_def}
    named = set(function_copy.control_ret.values())
    returned = map(producer_name, function_copy.ret.values())
    needed = reachable(returned, lambda name: map(producer_name, nodes[name].input) if name in nodes else ())
    for name in dict.fromkeys([*needed, *(name for name, node in nodes.items() if has_effect(node.op))]):
        if name in nodes and name not in named and op_types.is_stateful(nodes[name].op):
            function_copy.signature.control_output.append(name)
            function_copy.control_ret[name] = name
    return function_copy


def _with_calls(
    function: function_pb2.FunctionDef, library: Mapping[str, function_pb2.FunctionDef]
) -> function_pb2.FunctionDef:
    called = {node.name: library[node.op] for node in function.node_def if node.op in library}
    if not called:
        return function
    function_copy = copy_function(function)
    for node in function_copy.node_def:
        for index, tensor_name in enumerate(node.input):
            node.input[index] = _renamed(tensor_name, called)
        if node.name in called:
            _make_call(node, called[node.name])
    for result, tensor in list(function_copy.ret.items()):
        function_copy.ret[result] = _renamed(tensor, called)
    return function_copy


def _renamed(tensor_name: str, called: Mapping[str, function_pb2.FunctionDef]) -> str:
    """Returns a tensor's name as a call result: by index instead of by output name."""
    tensor = TensorName.parse(tensor_name)
    if tensor.producer not in called or not tensor.output:
        return tensor_name
    results = [result.name for result in called[tensor.producer].signature.output_arg]
    return str(TensorName(tensor.producer, "output", results.index(tensor.output) + tensor.position))


def _make_call(node: node_def_pb2.NodeDef, function: function_pb2.FunctionDef) -> None:
    for attribute in [key for key in node.attr if not key.startswith("_")]:
        del node.attr[attribute]  # values of type arguments, which a function that is in the library has none of
    signature = function.signature
    calls.make_call(
        node,
        (argument.type for argument in signature.input_arg),
        (argument.type for argument in signature.output_arg),
        node.op,
    )
