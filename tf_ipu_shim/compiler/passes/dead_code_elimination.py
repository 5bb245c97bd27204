"""Removes ops without side effects whose results nothing reads (dead-code elimination).

`tf.gradients` makes every gradient of an op wait for all gradients of that op. The weight gradients of a model's first
layer wait for the gradient of the images, which is as expensive and is discarded. XLA leaves such ops out, TensorFlow's
kernels would run them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Result
from tf_ipu_shim.compiler.ir.node_defs import awaited_nodes, copy_function, copy_node, data_inputs
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

# It costs nothing, and joins many control edges into few.
_JOIN = "NoOp"


def eliminate_dead_code(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Returns the function without ops that have neither side effects nor used results.

    Ops that waited for the removed op wait for its inputs instead, so the order stays.
    """
    graph = graph_with_effects(function, [])
    live = _live_nodes(graph)
    if len(live) == len(function.node_def):
        return function
    live_sources: dict[str, dict[str, None]] = {}  # for each node the live nodes to wait for in its place, in order
    for node in graph.nodes:
        if node.name in live:
            live_sources[node.name] = {node.name: None}
        else:
            before = node.predecessors()
            live_sources[node.name] = {name: None for predecessor in before for name in live_sources[predecessor.name]}
    function_copy = copy_function(function)
    del function_copy.node_def[:]
    for proto in function.node_def:
        if proto.name in live:
            function_copy.node_def.append(_with_live_controls(proto, live_sources))
    remaining = [name for name in function.signature.control_output if function.control_ret[name] in live]
    function_copy.signature.control_output[:] = remaining
    function_copy.control_ret.clear()
    function_copy.control_ret.update({name: function.control_ret[name] for name in remaining})
    return function_copy


def has_effect(op: str) -> bool:
    """Returns whether running an op type has an effect besides its results."""
    return op != vocabulary.READ_VARIABLE and op_types.is_stateful(op)


def graph_with_effects(function: function_pb2.FunctionDef, effect_ops: Iterable[str] | None = None) -> FunctionGraph:
    """Returns a function's graph of ops with effects or needed results, and their inputs."""
    signature = function.signature
    effects = [node.name for node in function.node_def if has_effect(node.op)]
    effects += [function.control_ret[name] for name in signature.control_output] if effect_ops is None else effect_ops
    results = [Result(result.name, result.type, function.ret[result.name]) for result in signature.output_arg]
    types = {argument.name: argument.type for argument in signature.input_arg}
    return FunctionGraph(signature.name, types, function.node_def, results, effects)


def _live_nodes(graph: FunctionGraph) -> set[str]:
    """Returns the names of nodes with effects, needed results, or that join control edges."""
    needed = graph.needed(graph.returns, graph.control_returns, lambda _, control: control.op == _JOIN)
    return {node.name for node in needed}


def _with_live_controls(proto: node_def_pb2.NodeDef, live_sources: Mapping[str, Iterable[str]]) -> node_def_pb2.NodeDef:
    """Returns a copy of an op that waits for live ops only."""
    controls = dict.fromkeys(name for awaited in awaited_nodes(proto) for name in live_sources[awaited])
    return copy_node(proto, [*data_inputs(proto), *(f"^{name}" for name in controls)])
