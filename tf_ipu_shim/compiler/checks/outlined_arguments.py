"""Refuses outlined functions that need the constant value of an argument, because all calls share one code."""

from __future__ import annotations

from collections.abc import Iterator

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.plugin.library import Call
from tf_ipu_shim.tf_private.protos import function_pb2

# Ops that shapes, axes and permutations are made by.
_SHAPE_ARITHMETIC = vocabulary.VIEWS | {"Cast", "ConcatV2", "Pack", "StridedSlice"}


def refuse_constant_arguments(call: Call, diagnostics: Diagnostics, functions: Functions) -> None:
    """Raises if an op needs an outlined function's argument as a compile-time constant."""
    for graph in map(functions.__getitem__, functions.reached()):
        for argument in graph.nodes:
            if vocabulary.OUTLINED_ATTRIBUTE not in argument.proto.attr:
                continue
            for node, index in _consumers(argument):
                if _needs_constants(call, functions, graph, node)[index]:
                    function = argument.proto.attr[vocabulary.OUTLINED_ATTRIBUTE].s.decode()
                    raise errors_impl.InvalidArgumentError(
                        None,
                        None,
                        f"Input {index} to node `{node.name}` with op {node.op} must be a compile-time constant, and "
                        f"it is an argument of the outlined function {function}, whose code is one for all arguments: "
                        f"{diagnostics.describe(graph.name, node)}. Make the constant in the function, take it from "
                        "around the function, or hand over a Python number or list.",
                    )


def _consumers(argument: Node) -> Iterator[tuple[Node, int]]:
    """Yields the ops that consume values derived from an argument, with the input index."""
    pending, seen = [argument], {argument}
    while pending:
        producer = pending.pop()
        for user in producer.users:
            for index, operand_producer in enumerate(user.producers):
                if operand_producer is producer and user.op not in vocabulary.FUNCTION_ATTRIBUTES:
                    yield user, index
            if user.op in _SHAPE_ARITHMETIC and user not in seen:
                seen.add(user)
                pending.append(user)


def _needs_constants(call: Call, functions: Functions, graph: FunctionGraph, node: Node) -> list[bool]:
    """Returns which inputs of an op XLA needs as compile-time constants, from a function of this op only."""
    definition = function_pb2.FunctionDef()
    definition.signature.name = functions.fresh_name("outlined_arguments")  # a call keeps what it was asked about
    for index, tensor_name in enumerate(node.inputs):
        definition.signature.input_arg.add(name=f"input_{index}", type=graph.type_of(tensor_name))
    single_op = definition.node_def.add()
    single_op.CopyFrom(node.proto)
    single_op.input[:] = [argument.name for argument in definition.signature.input_arg]
    library = function_pb2.FunctionDefLibrary(function=[definition])
    return call.constant_arguments(library.SerializeToString(), definition.signature.name, len(node.inputs))
