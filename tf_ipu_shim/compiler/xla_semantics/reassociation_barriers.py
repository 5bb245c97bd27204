"""Keeps XLA from reassociating float arithmetic such as `(x + c) - c` or `x / y / y`.

XLA's algebraic simplifier treats floats as real numbers. An optimization barrier between two ops that it would rewrite
reassociated stops it; ops are fused all the same. Ops of constants need no barrier: XLA's compiler computes them by
TensorFlow's kernels, and a barrier would prevent that. Only executed programs have them. Checked on TensorFlow 2.15.1
and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.constant_folding import folded_ops
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.node_defs import is_control, producer_name
from tf_ipu_shim.compiler.ir.node_writer import NodeWriter
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_BARRIER = "XlaOptimizationBarrier"
_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT})
_SUMS = frozenset({"Add", "AddV2", "Sub", "Neg", "AddN", "BiasAdd"})
_PRODUCTS = frozenset({"Mul", "RealDiv", "Div", "Square", "Inv", "Reciprocal"})
# For each op type, the producers that it must not be combined with.
_REASSOCIATED = {
    **dict.fromkeys(("Add", "AddV2", "Sub", "AddN", "BiasAdd"), _SUMS),
    **dict.fromkeys(("Mul", "RealDiv", "Div"), _PRODUCTS | {"Exp", "Pow"}),
    "Log": frozenset({"Pow", "Exp", "Mul", "RealDiv", "Div", "Sqrt", "Rsqrt"}),
    "Exp": frozenset({"Log"}),
    "Pow": frozenset({"Pow", "Exp", "Sqrt", "Rsqrt"}),
    "Sqrt": frozenset({"Pow", "Mul", "Square", "Exp"}),
    "Rsqrt": frozenset({"Pow", "Mul", "Square", "Exp"}),
}
# Their values depend on whether XLA's compiler computes them.
_RANDOM_PREFIXES = ("StatelessMultinomial", "StatelessRandom", "StatelessTruncated")
# Ops that only change the shape or layout of their elements.
_SAME_ELEMENTS = vocabulary.IDENTITIES | {"Reshape", "ExpandDims", "Squeeze", "BroadcastTo", "Tile"}
# Arguments and results of a function may come from any op there.
_OPAQUE = frozenset({"_Arg", *vocabulary.CALLS})


def with_barriers(program: LoweredProgram) -> LoweredProgram:
    """Returns the program with barriers between ops that XLA would reassociate."""
    functions = {function.signature.name: function for function in program.functions}
    called = {
        called.name
        for function in functions.values()
        for node in function.node_def
        if node.op in vocabulary.CALLS
        for _, called in op_types.function_values(node)
    }
    edges_of = {name: edges for name, definition in functions.items() if (edges := _edges(definition, name in called))}
    if edges_of and any(
        node.op.startswith(_RANDOM_PREFIXES) for function in functions.values() for node in function.node_def
    ):
        edges_of = _without_constants(edges_of, functions)

    def change(function: function_pb2.FunctionDef, _: str) -> None:
        edges = edges_of.get(function.signature.name)
        if edges:
            _put_between(function, edges)

    return rewrite_functions(program, callers_of(edges_of, functions), change) if edges_of else program


def _edges(function: function_pb2.FunctionDef, is_called: bool) -> dict[str, set[str]]:
    """Maps ops to the inputs that XLA would combine them with."""
    nodes = {node.name: node for node in function.node_def}
    edges: dict[str, set[str]] = {}
    for node in function.node_def:
        reassociated = _REASSOCIATED.get(node.op)
        if reassociated is None or node.attr["T"].type not in _FLOATING:
            continue
        for tensor_name in node.input:
            producer = _producer(tensor_name, nodes)
            if producer in reassociated or (producer in _OPAQUE and (producer != "_Arg" or is_called)):
                edges.setdefault(node.name, set()).add(tensor_name)
    return edges


def _without_constants(
    edges_of: Mapping[str, dict[str, set[str]]], functions: Mapping[str, function_pb2.FunctionDef]
) -> dict[str, dict[str, set[str]]]:
    computed = folded_ops(functions)
    remaining = {
        function: {
            name: {tensor_name for tensor_name in tensor_names if producer_name(tensor_name) not in computed[function]}
            for name, tensor_names in edges.items()
        }
        for function, edges in edges_of.items()
    }
    return {function: edges for function, edges in remaining.items() if any(edges.values())}


def _producer(tensor_name: str, nodes: Mapping[str, node_def_pb2.NodeDef]) -> str:
    """Returns the type of the op that computes a tensor's elements; `_Arg` for an argument."""
    while not is_control(tensor_name):
        node = nodes.get(producer_name(tensor_name))
        if node is None:
            return "_Arg"
        if node.op not in _SAME_ELEMENTS:
            return node.op
        tensor_name = node.input[0]
    return ""


def _put_between(function: function_pb2.FunctionDef, edges: Mapping[str, set[str]]) -> None:
    writer = NodeWriter(function, "as_written")
    barriers: dict[str, str] = {}
    for node in function.node_def:
        for index, tensor_name in enumerate(node.input):
            if tensor_name not in edges.get(node.name, ()):
                continue
            if tensor_name not in barriers:
                writer.op(_BARRIER, [tensor_name], tensor_name.replace(":", "_"))
                writer.last.device = node.device
                writer.last.attr["T"].list.type.append(node.attr["T"].type)
                barriers[tensor_name] = f"{writer.last.name}:output:0"
            node.input[index] = barriers[tensor_name]
    function.node_def.extend(writer.nodes)
