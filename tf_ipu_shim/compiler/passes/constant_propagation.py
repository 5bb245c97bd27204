"""Propagates constants out of functions: replaces call and branch results with known values.

XLA must know axes, shapes and permutations when it compiles. A gradient function reads its forward function's constants
from that function's results. If the call is in a branch, XLA does not know that they are constants. It compiles with
their largest possible value (a dynamic size), which leads to a wrong gradient or an error about shapes. Example: the
gradient of `tf.gather(x, indices, axis=1)` in a `tf.function` called in a `tf.cond`. If the call is in a loop, the
gradient's loop reads them from TensorLists, one an iteration. An IPU does not support dynamic shapes, so such numbers
are constants there, too.

A seed stays, even if it is passed to other functions (`seed_uses`): XLA draws other random numbers from a constant seed
(`constant_folding`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.passes.constant_values import CONSTANT_SOURCES, ConstantValues
from tf_ipu_shim.compiler.passes.seed_uses import SeedUses
from tf_ipu_shim.tf_private.protos import node_def_pb2


def propagate_constants(functions: Functions) -> None:
    """Replaces results of calls and branches, and list elements, that are known constants."""
    constant_values = ConstantValues(functions)
    constants_of = {name: _constants_in(functions[name], constant_values) for name in functions.reached()}
    if not any(constants_of.values()):
        return
    seeds = SeedUses(functions)
    for name, constants in constants_of.items():
        if constants:
            _replace(functions[name], constants, seeds)


def _constants_in(graph: FunctionGraph, constant_values: ConstantValues) -> dict[str, node_def_pb2.NodeDef]:
    """Maps every used tensor with a known value to its replacement constant."""
    if graph.ops.isdisjoint(CONSTANT_SOURCES):
        return {}
    constants: dict[str, node_def_pb2.NodeDef] = {}
    for node in graph.nodes:
        for tensor_name, value in constant_values.constants_of(graph, node):
            new_node = copy_node(value)
            new_node.name = f"{node.name}/result_{tensor_name.rsplit(':', 1)[1]}"
            del new_node.input[:]
            constants[tensor_name] = new_node
    used = {tensor_name for node in graph.nodes for tensor_name in node.inputs}.union(graph.returns)
    return {tensor_name: constant for tensor_name, constant in constants.items() if tensor_name in used}


def _replace(graph: FunctionGraph, constants: dict[str, node_def_pb2.NodeDef], seeds: SeedUses) -> None:
    """Makes consumers of known tensors use the constants."""

    def renamed(tensor_name: str) -> str:
        return f"{constants[tensor_name].name}:output:0" if tensor_name in constants else tensor_name

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if constants.keys().isdisjoint(node.inputs):
            return None
        texts = enumerate(node.proto.input)
        inputs = [
            tensor_name if seeds.is_seed(graph, node, index, tensor_name) else renamed(tensor_name)
            for index, tensor_name in texts
        ]
        return [copy_node(node.proto, inputs)]

    is_seed = [seeds.is_returned_seed(graph, index) for index in range(len(graph.results))]
    graph.rewrite(rule, before=list(constants.values()))
    graph.results = [
        result if is_kept else result._replace(tensor=renamed(result.tensor))
        for result, is_kept in zip(graph.results, is_seed)
    ]
