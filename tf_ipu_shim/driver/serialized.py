"""Writes the files of `serialization_output_folder`: a program with its inputs and outputs.

A program is two files, named by its digest. `DIGEST.ipu_bin` has the content of a file of the executable cache, and
`DIGEST.json` lists its streams.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.checks.diagnostics import display_name, program_name
from tf_ipu_shim.compiler.ir import traced_functions, vocabulary
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.ir.written_variables import written_arguments
from tf_ipu_shim.driver import cached_programs
from tf_ipu_shim.driver.answers import Program
from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.plugin.library import Library
from tf_ipu_shim.runtime import captured_programs, log
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import types_pb2

# XLA's names of types; all others are called in the same way.
_XLA_NAMES = {"bool": "PRED", "bfloat16": "BF16", "float": "F", "uint": "U", "int": "S"}
_RESULT = "XLA_Retvals"  # what Graphcore's TensorFlow calls a result


def is_requested(device: IpuDevice) -> bool:
    """Returns whether a configuration requests serialised program files."""
    return bool(device.options.serialization_folder) and not captured_programs.active()


def write_serialized(library: Library, request: ProgramRequest, device: IpuDevice, program: Program) -> None:
    """Writes a program's files to the configured folder.

    Failed writes are logged, and the program still runs.
    """
    if not program.needs_engine:
        return
    folder = pathlib.Path(device.options.serialization_folder)
    key = cached_programs.key_of(library, request, device)
    shown = program_name(request.function, request.name)
    path = folder / hashlib.sha256(key.text).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        private_files.replace(path.with_suffix(".ipu_bin"), cached_programs.serialize(key, program))
        private_files.replace(
            path.with_suffix(".json"), json.dumps(streams(request, program.result_shapes), indent=1).encode()
        )
    except OSError as error:
        log.warning(f"The program {shown} cannot be written to {folder} (serialization_output_folder): {error}")
        return
    log.info(f"The program {shown} is written to {path}.ipu_bin, and its streams to {path}.json")


def streams(request: ProgramRequest, result_shapes: Sequence[Sequence[int] | None]) -> dict[str, Any]:
    """Describes the inputs and outputs of a program."""
    infeeds, outfeeds = list(_feeds(request, vocabulary.INFEEDS)), list(_feeds(request, {vocabulary.OUTFEED_ENQUEUE}))
    arguments, variables = _arguments(request)
    written = written_arguments(request.function, request.library)
    results = _results(request, result_shapes)
    return {
        "program": display_name(request.function),
        "inputs": [*sorted(arguments, key=lambda stream: str(stream["name"])), *(stream for _, stream in variables)],
        "outputs": [
            *results,
            *(
                {**stream, "type": "parameter_out", "handle": f"out_{index}.0"}
                for index, (_, stream) in enumerate(
                    ((argument, stream) for argument, stream in variables if argument in written), len(results)
                )
            ),
        ],
        "infeeds": [_feed(feed_index, tensors) for feed_index, tensors in enumerate(infeeds, 1)],
        "outfeeds": [_feed(feed_index, tensors) for feed_index, tensors in enumerate(outfeeds, 1 + len(infeeds))],
    }


def _arguments(request: ProgramRequest) -> tuple[list[dict[str, Any]], list[tuple[int, dict[str, Any]]]]:
    """Returns tensor arguments, and variable arguments with their index."""
    graph = traced_functions.traced_graph(request.function)
    arguments, variables = [], []
    for index, argument in enumerate(request.library[request.function].signature.input_arg):
        kind, handle = request.arg_types[index], f"{index}.0"
        if kind != types_pb2.DT_RESOURCE:
            name = argument.name if graph is None else graph.inputs[index].op.name
            arguments.append(_stream(name, "input_data", handle, kind, request.arg_shapes[index]))
        elif request.variable_types[index]:
            shape = request.variable_shapes[index]
            name = request.variable_names[index]
            variables.append((index, _stream(name, "parameter", handle, request.variable_types[index], shape)))
    return arguments, variables


def _results(request: ProgramRequest, shapes: Sequence[Sequence[int] | None]) -> list[dict[str, Any]]:
    results = request.library[request.function].signature.output_arg
    return [
        _stream(_RESULT, "output_data", f"out_{index}.0", result.type, shape)
        for index, (result, shape) in enumerate(zip(results, [*shapes, *[None] * len(results)]))
    ]


def _feeds(request: ProgramRequest, ops: frozenset[str] | set[str]) -> Iterator[Any]:
    """Yields dtypes and shapes of each feed that these ops use, in order of discovery."""
    functions, seen = Functions(request.library, request.function), set()
    for name in functions.reached():
        for node in functions[name].nodes:
            if node.op not in ops:
                continue
            iterator = node.producers[0] if node.op in vocabulary.INFEEDS else node
            attribute = "shared_name" if node.op in vocabulary.INFEEDS else "feed_id"
            feed = (name, node.inputs[0]) if iterator is None else iterator.proto.attr[attribute].s
            if feed not in seen:
                seen.add(feed)
                yield zip(node.proto.attr["output_types"].list.type, node.proto.attr["output_shapes"].list.shape)


def _feed(feed_index: int, tensors: Any) -> dict[str, Any]:
    return {
        "name": str(feed_index),
        "streams": [
            {"name": f"{feed_index}.{index}", "shape": _shape(kind, [dimension.size for dimension in shape.dim])}
            for index, (kind, shape) in enumerate(tensors)
        ],
    }


def _stream(name: str, of: str, handle: str, kind: int, shape: Sequence[int] | None) -> dict[str, Any]:
    return {"name": name, "type": of, "handle": handle, "shape": _shape(kind, shape)}


def _shape(kind: int, shape: Sequence[int] | None) -> dict[str, Any]:
    return {"data_type": _xla_name(kind), "shape": None if shape is None else list(shape)}


def _xla_name(kind: int) -> str:
    name = dtypes.as_dtype(kind).name
    prefix = next((prefix for prefix in _XLA_NAMES if name.startswith(prefix)), "")
    return _XLA_NAMES.get(prefix, "") + name[len(prefix) :].upper()
