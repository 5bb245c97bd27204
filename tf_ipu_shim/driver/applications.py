"""Writes a program to a file that embedded engines run (see `runtime.application_file`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl
from tensorflow.compat.v2 import version as tensorflow_versions

import tf_ipu_shim
from tf_ipu_shim.compiler.checks.feed_signature import Feed, find_feeds
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.ir.written_variables import written_arguments
from tf_ipu_shim.driver.engine_needed import is_scalar_elementwise
from tf_ipu_shim.messages import poplar_executable_pb2
from tf_ipu_shim.plugin.library import Library
from tf_ipu_shim.runtime import application_file
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import graph_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_ARGUMENT, _RESULT = "XLA_Args/", "XLA_Retvals/"


def write_application_file(
    library: Library, request: ProgramRequest, application: Any, program: LoweredProgram, device: IpuDevice
) -> str:
    """Writes the file for an `IpuApplicationCompile` op; returns its path."""
    infeeds, outfeeds = find_feeds(request.function, request.library)
    if not (infeeds or outfeeds) and is_scalar_elementwise(request, program):
        raise _error(
            "Cannot serialize a scalar elementwise graph: the driver computes it without an engine. Run it with "
            "ipu_compiler.compile."
        )
    _refuse_double(request)
    refuse_host_code(library, request.library.values())
    iterators = {feed.argument: index for index, feed in enumerate(infeeds) if feed.argument is not None}
    written = written_arguments(request.function, request.library) - iterators.keys()
    executable = poplar_executable_pb2.PoplarExecutableProto(
        format=application_file.FORMAT,
        written_by=tf_ipu_shim.__version__,
        tensorflow_version=tensorflow_versions.VERSION,
        configuration=device.options.SerializeToString(deterministic=True),
    )
    config = executable.embedded_runtime_config
    config.num_ipus, config.replicas = device.num_ipus, program.replicas
    entry = executable.program
    entry.name, entry.function = request.name, request.function
    entry.library.function.extend(request.library.values())
    results = request.library[request.function].signature.output_arg
    entry.output_types.extend(result.type for result in results)
    weights = _add_arguments(entry, config.signature, request, application, iterators, written)
    signature = config.signature
    for index, (result, shape) in enumerate(zip(results, application.output_shapes)):
        signature.outputs.add(name=f"{_RESULT}output_{index}", data_type=result.type, shape=shape)
    _stream(signature.streamed_inputs, entry.infeeds, infeeds, "infeed")
    _stream(signature.streamed_outputs, entry.outfeeds, outfeeds, "outfeed")
    return application_file.write(application.path, executable, weights)


def _add_arguments(
    entry: Any,
    signature: Any,
    request: ProgramRequest,
    application: Any,
    iterators: Mapping[int, int],
    written: set[int],
) -> list[bytes]:
    """Records the source of each argument when the file runs; returns the values stored in it."""
    weights: list[bytes] = []
    for index, argument in enumerate(application.arguments):
        is_variable = request.arg_types[index] == types_pb2.DT_RESOURCE
        types = request.variable_types if is_variable else request.arg_types
        shapes = request.variable_shapes if is_variable else request.arg_shapes
        entered = entry.arguments.add(variable=is_variable)
        entered.tensor.name, entered.tensor.data_type = _ARGUMENT + argument.name, types[index]
        for size in shapes[index]:
            entered.tensor.shape.dim.add(size=size)
        if index in iterators:
            entered.kind, entered.index, entered.variable = entered.INFEED, iterators[index], False
        elif argument.HasField("value"):
            if index in written:
                raise _error(
                    f"freeze_variables=True makes the value of variable {argument.name} part of the application, which "
                    "writes to it. Leave freeze_variables out: the variable is then an input of the engine."
                )
            entered.kind, entered.index = entered.WEIGHTS, len(weights)
            weights.append(tensor_util.MakeNdarray(argument.value).tobytes())
        else:
            entered.kind, entered.index = entered.INPUT, len(signature.inputs)
            signature.inputs.add().CopyFrom(entered.tensor)
        if index in written:
            output = signature.outputs.add()
            output.CopyFrom(entered.tensor)
            output.name = _RESULT + argument.name
    return weights


def refuse_host_code(library: Library, functions: Any) -> None:
    """Refuses programs with host ops, because a file can only hold code that XLA compiles."""
    graph = graph_pb2.GraphDef()
    graph.node.extend(_on_host(functions))
    refused = set(library.uncompilable(graph.SerializeToString()))
    ops = sorted({node.op for node in graph.node if node.name in refused})
    if ops:
        raise _error(
            f"An application cannot run {', '.join(ops)} on the host: its file holds computations only. Leave "
            "outside_compilation_scope and ipu_send_to_host out of it, and do this before or after "
            "embedded_runtime_call."
        )


def _on_host(functions: Any) -> Iterator[node_def_pb2.NodeDef]:
    for function in functions:
        for node in function.node_def:
            served = node.op in vocabulary.HOST_OPS or node.op in vocabulary.PLUGIN_OPS
            is_marked = vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in node.attr
            if node.op == vocabulary.SEND_TO_HOST or (is_marked and not served):
                bare = copy_node(node)
                bare.name = f"{function.signature.name}/{node.name}"
                del bare.input[:]
                yield bare


def _refuse_double(request: ProgramRequest) -> None:
    for function in request.library.values():
        for node in function.node_def:
            if any(types_pb2.DT_DOUBLE in types for types in op_types.output_types(node).values()):
                raise _error(
                    f"Detected unsupported operations when trying to compile graph {function.signature.name}: "
                    f"{node.op} {node.name} computes in float64, which IPUs do not have. Use float32."
                )


def _stream(tensors: Any, entries: Any, feeds: Sequence[Feed], kind: str) -> None:
    for index, feed in enumerate(feeds):
        entries.add(id=feed.id)
        for part, (data_type, shape) in enumerate(zip(feed.types, feed.shapes)):
            tensors.add(name=f"{kind}_{index}.{part}", data_type=data_type, shape=shape, feed=index)


def _error(message: str) -> Exception:
    error: Exception = errors_impl.InvalidArgumentError(None, None, message)
    return error
