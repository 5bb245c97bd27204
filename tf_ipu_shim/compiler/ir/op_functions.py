"""Replaces ops by calls of functions that compute the same with other ops.

Uses `graph_to_function_def`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import calls, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, copy_annotations, copy_node, data_inputs
from tf_ipu_shim.tf_private.graphs import graph_to_function_def, ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


class Replacement(NamedTuple):
    """A function that replaces an op.

    Args:
        inputs: its inputs, `DataType` by name: the op's inputs in their order, the last ones may be left out.
        outputs: its results, `DataType` by name: the op's outputs that a program can use.
        build: makes the ops that compute the outputs of the inputs.
        finish: changes an op after creation, if TensorFlow's Python cannot create it so.
        has_kernel: whether in mode `kernels` the op itself runs. Its one output is `output`; `inputs` are all its own.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    build: Callable[..., Sequence[Any]]
    finish: Callable[[node_def_pb2.NodeDef], None] = lambda node: None
    has_kernel: bool = False


# For an op what stands for it; None where it stays.
Rule = Callable[[Node], "Replacement | None"]


def replace_ops(functions: Functions, target_types: frozenset[str], rule: Rule) -> None:
    """Replaces ops of a program by function calls."""
    for name in functions.reached():
        graph = functions[name]
        if not graph.ops.isdisjoint(target_types):
            replacements = {node: rule(node) for node in graph.nodes if node.op in target_types}
            _replace_in(
                functions,
                graph,
                {node: replacement for node, replacement in replacements.items() if replacement is not None},
            )


def restore_op(node: node_def_pb2.NodeDef) -> None:
    """Restores the original op from the call that replaced it, if it has a kernel."""
    if vocabulary.STANDS_FOR_ATTRIBUTE in node.attr:
        op = node_def_pb2.NodeDef.FromString(node.attr[vocabulary.STANDS_FOR_ATTRIBUTE].s)
        node.op = op.op
        node.ClearField("attr")
        for name, value in op.attr.items():
            node.attr[name].CopyFrom(value)


def _replace_in(functions: Functions, graph: FunctionGraph, replacements: Mapping[Node, Replacement]) -> None:
    renamed = {
        f"{node.name}:{output}:0": f"{node.name}:output:{index}"
        for node, replacement in replacements.items()
        for index, output in enumerate(replacement.outputs)
    }

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if node not in replacements and renamed.keys().isdisjoint(node.inputs):
            return None
        new_node = copy_node(node.proto, [renamed.get(tensor_name, tensor_name) for tensor_name in node.proto.input])
        if node in replacements:
            new_node = _call(new_node, replacements[node], _function(functions, node, replacements[node]))
        return [new_node]

    if replacements:
        graph.rewrite(rule)
        graph.results = [result._replace(tensor=renamed.get(result.tensor, result.tensor)) for result in graph.results]


def _call(node: node_def_pb2.NodeDef, replacement: Replacement, function: str) -> node_def_pb2.NodeDef:
    """Returns the call that replaces an op."""
    operands = data_inputs(node)[: len(replacement.inputs)]
    new_node = node_def_pb2.NodeDef(name=node.name, device=node.device, input=operands)
    new_node.input.extend(control_inputs(node))
    copy_annotations(node, new_node)
    if replacement.has_kernel:
        new_node.attr[vocabulary.STANDS_FOR_ATTRIBUTE].s = node.SerializeToString()
    calls.make_call(new_node, replacement.inputs.values(), replacement.outputs.values(), function)
    return new_node


def _function(functions: Functions, node: Node, replacement: Replacement) -> str:
    """Adds the function that replaces an op; returns its name."""
    with ops.Graph().as_default() as graph:
        operands = [
            array_ops.placeholder(dtypes.as_dtype(kind), name=name) for name, kind in replacement.inputs.items()
        ]
        results = replacement.build(*operands)
        definition: function_pb2.FunctionDef = graph_to_function_def.graph_to_function_def(
            graph, graph.get_operations(), operands, results, list(replacement.outputs)
        )
    name = definition.signature.name = functions.fresh_name(f"ipu_in_place_of_{node.op}")
    for inner in definition.node_def:
        replacement.finish(inner)
        if vocabulary.SHARDING_ATTRIBUTE in node.proto.attr:
            inner.attr[vocabulary.SHARDING_ATTRIBUTE].CopyFrom(node.proto.attr[vocabulary.SHARDING_ATTRIBUTE])
    functions.add(FunctionGraph.parse(definition))
    return name
