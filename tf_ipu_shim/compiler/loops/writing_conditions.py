"""Moves loop conditions that write variables into the body, which then carries the condition's result.

XLA has no conditions with side effects. The first condition is computed before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import calls, op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.written_variables import READS
from tf_ipu_shim.compiler.loops.function_builder import FunctionBuilder
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_BOOL = types_pb2.DT_BOOL


def carry_conditions(functions: Functions) -> None:
    """Makes loops carry the results of conditions with side effects."""
    for name in functions.reached():
        graph = functions[name]
        loops = {node.name: _with_carried(functions, graph, node) for node in graph.nodes if _writes(functions, node)}
        if loops:
            graph.rewrite(lambda node, loops=loops: loops.get(node.name))  # type: ignore[misc]


def _writes(functions: Functions, loop: Node) -> bool:
    if loop.op not in vocabulary.LOOPS:
        return False
    condition = functions[loop.proto.attr["cond"].func.name]
    if condition.return_types != [_BOOL]:
        return False
    return any(_writes_variable(node) for name in functions.reached(condition.name) for node in functions[name].nodes)


def _writes_variable(node: Node) -> bool:
    if node.op in READS | vocabulary.IDENTITIES or node.op in vocabulary.FUNCTION_ATTRIBUTES:
        return False
    return op_types.RESOURCE in op_types.input_types(node.proto)


def _with_carried(functions: Functions, graph: FunctionGraph, loop: Node) -> Sequence[node_def_pb2.NodeDef]:
    """Returns the first condition op and the loop that carries later results."""
    types = [graph.type_of(tensor_name) for tensor_name in loop.inputs]
    condition, body = (loop.proto.attr[part].func.name for part in ("cond", "body"))
    first = node_def_pb2.NodeDef(name=f"{loop.name}/first_condition", input=loop.proto.input)
    calls.make_call(first, types, [_BOOL], condition)
    new_node = copy_node(loop.proto)
    new_node.op = "While"
    new_node.input.insert(len(loop.inputs), f"{first.name}:output:0")
    new_node.attr["T"].list.type.append(_BOOL)
    if new_node.attr["output_shapes"].list.shape:
        new_node.attr["output_shapes"].list.shape.add()
    new_node.attr["cond"].func.name = _carried_condition(functions, condition, types)
    new_node.attr["body"].func.name = _body_with_condition(functions, body, condition, types)
    return [first, new_node]


def _carried_condition(functions: Functions, condition: str, types: Sequence[int]) -> str:
    """Adds a condition that returns the carried value."""
    writer = FunctionBuilder(functions.fresh_name(f"{condition}_carried"), functions[condition].traced)
    for index, kind in enumerate(types):
        writer.argument(f"carried_{index}", kind)
    writer.result(_BOOL, writer.argument("goes_on", _BOOL))
    functions.add(writer.graph)
    return writer.graph.name


def _body_with_condition(functions: Functions, body: str, condition: str, types: Sequence[int]) -> str:
    """Adds a body that also computes the next condition."""
    writer = FunctionBuilder(functions.fresh_name(f"{body}_with_condition"), functions[body].traced)
    carried = [writer.argument(f"carried_{index}", kind) for index, kind in enumerate(types)]
    writer.argument("goes_on", _BOOL)
    results = [f"body:output:{index}" for index in range(len(types))]
    for name, inputs, dtype_enums, called in (
        ("body", carried, types, body),
        ("condition", results, [_BOOL], condition),
    ):
        node = node_def_pb2.NodeDef(name=name, input=inputs)
        calls.make_call(node, types, dtype_enums, called)
        writer.add(node)
        writer.must_run(name)
    for kind, tensor_name in zip(types, results):
        writer.result(kind, tensor_name)
    writer.result(_BOOL, "condition:output:0")
    functions.add(writer.graph)
    return writer.graph.name
