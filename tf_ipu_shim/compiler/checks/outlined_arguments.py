"""Arguments of outlined functions that their code would have to know, which is one for all calls."""

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
_MAKING = vocabulary.VIEWS | {"Cast", "ConcatV2", "Pack", "StridedSlice"}


def refuse_constants(call: Call, diagnostics: Diagnostics, functions: Functions) -> None:
    """Refuses programs in which an op must know an argument of an outlined function when it is compiled.

    Args:
        call: asks TensorFlow's analysis.
        diagnostics: finds the ops' source lines.
        functions: the program.

    Raises:
        InvalidArgumentError: there is one; XLA's wording, the function and the op's line.
    """
    for graph in map(functions.__getitem__, functions.reached()):
        for argument in graph.nodes:
            if vocabulary.OUTLINED_ATTRIBUTE not in argument.proto.attr:
                continue
            for node, index in _takers(argument):
                if _must_know(call, functions, graph, node)[index]:
                    function = argument.proto.attr[vocabulary.OUTLINED_ATTRIBUTE].s.decode()
                    raise errors_impl.InvalidArgumentError(
                        None,
                        None,
                        f"Input {index} to node `{node.name}` with op {node.op} must be a compile-time constant, and "
                        f"it is an argument of the outlined function {function}, whose code is one for all arguments: "
                        f"{diagnostics.describe(graph.name, node)}. Make the constant in the function, take it from "
                        "around the function, or hand over a Python number or list.",
                    )


def _takers(argument: Node) -> Iterator[tuple[Node, int]]:
    """The ops that take what is made of an argument, and as which of their inputs."""
    waiting, seen = [argument], {argument}
    while waiting:
        producer = waiting.pop()
        for user in producer.users:
            for index, one in enumerate(user.producers):
                if one is producer and user.op not in vocabulary.FUNCTION_ATTRIBUTES:
                    yield user, index
            if user.op in _MAKING and user not in seen:
                seen.add(user)
                waiting.append(user)


def _must_know(call: Call, functions: Functions, graph: FunctionGraph, node: Node) -> list[bool]:
    """Which inputs of an op XLA must know when it compiles: asked of a function of this op alone."""
    definition = function_pb2.FunctionDef()
    definition.signature.name = functions.fresh("outlined_arguments")  # a call keeps what it was asked about
    for index, text in enumerate(node.inputs):
        definition.signature.input_arg.add(name=f"input_{index}", type=graph.type_of(text))
    alone = definition.node_def.add()
    alone.CopyFrom(node.proto)
    alone.input[:] = [argument.name for argument in definition.signature.input_arg]
    library = function_pb2.FunctionDefLibrary(function=[definition])
    return call.constant_arguments(library.SerializeToString(), definition.signature.name, len(node.inputs))
