"""Serialises lowered programs for the executable cache, keyed independently of generated names.

A request is described without the names that a process makes up: of functions, and of feeds. A stored program has the
names of the process that lowered it; a process that loads it replaces them with its own.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf import message as protobuf
from tensorflow.compat.v2 import version as tensorflow_versions

import tf_ipu_shim
from tf_ipu_shim import sdk
from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import copy_function
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.driver.answers import Program
from tf_ipu_shim.machine.environment import execution_mode, flags
from tf_ipu_shim.machine.memory import plan_text
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.memory_model.variables.storage import read_storage_options
from tf_ipu_shim.messages import cached_program_pb2
from tf_ipu_shim.plugin.library import Library
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, node_def_pb2

_serial = itertools.count()
_ROOMS = ("compiler", "cycle_model", "driver", "machine", "memory_model", "messages")
# By which feeds are found. Nothing else that a function holds is named by the process.
_FEED_ATTRIBUTES = ("shared_name", "feed_id")
_RUN_GROUP = "run_group"
# Of a function: names of others that TensorFlow's gradients use, which no program runs.
_UNUSED_ATTRIBUTES = ("forward_function_name", "backward_function_name")
# Of an op: the function that TensorFlow's Python differentiates it by, as registered by this process.
_GRADIENT = "_gradient_op_type"
# Of an argument: what a traced function called it, which nothing reads. In it too are numbers that a process counts.
_NAME_OF_ARGUMENT = "_user_specified_name"
# How the name begins of a resource that has none: its address follows.
_UNNAMED = "Resource-"
# Of a configuration: which IPUs it gets and when, and what is reported. Their effect on a program is in the key.
_NOT_OF_THE_PROGRAM = (
    "creator_id device_config ipu_model_config profiling device_connection_type ipu_version serialization_folder "
    "enable_remote_buffers_without_device"
).split()


@dataclasses.dataclass(frozen=True)
class Key:
    """The key of a program in the cache.

    Args:
        text: equal for programs that are the same.
        functions: names of its functions in this process, the entry first.
    """

    text: bytes
    functions: list[str]
    feeds: list[str]


def key_of(library: Library, request: ProgramRequest, device: IpuDevice) -> Key:
    """Returns a program's cache key, without names that this process generated."""
    names = _Names(request)
    description = hashlib.sha256()
    for function in names.functions:
        description.update(names.described(request.library[function]))
    facts = {
        "program": description.hexdigest(),
        "arguments": [
            [int(kind), list(shape), name, int(variable), list(variable_shape)]
            for kind, shape, name, variable, variable_shape in zip(
                request.arg_types,
                request.arg_shapes,
                _stable_names(request.variable_names),
                request.variable_types,
                request.variable_shapes,
            )
        ],
        "configuration": _configuration(device.options).hex(),
        "device": [
            request.ordinal,
            device.num_ipus,
            device.selection_order,
            int(device.float_checks),
            str(device.chip),
            _has_state_in_remote_buffers(request, device),
        ],
        "engine_options": sorted(device.engine_options.items()),
        "flags": flags.current().compilation_key,
        "settings": [
            execution_mode.requested_mode(),
            execution_mode.requests_xla_dumps(),
            memory_plan.enabled(),
            memory_plan.includes_library_calls(),
        ],
        "sdk": str(sdk.current()),
        "tensorflow": [tensorflow_versions.VERSION, tensorflow_versions.GIT_VERSION],
        "tf_ipu_shim": [tf_ipu_shim.__version__, library.path.name, _sources()],
    }
    return Key(json.dumps(facts, sort_keys=True).encode(), list(names.functions), list(names.feeds))


def serialize(key: Key, program: Program) -> bytes:
    """Serialises a program for the cache."""
    entry = cached_program_pb2.CachedProgram(
        key=key.text,
        functions=key.functions,
        feeds=key.feeds,
        answer=program.answer,
        needs_engine=program.needs_engine,
        launches=program.launches,
        plan="" if program.plan is None else plan_text.to_text(program.plan),
        user_op_calls=program.user_op_calls,
    )
    return bytes(entry.SerializeToString(deterministic=True))


def deserialize(key: Key, content: bytes) -> Program | None:
    """Deserialises a program with this process's names; None if it is another program."""
    try:
        entry = cached_program_pb2.CachedProgram.FromString(content)
        plan = plan_text.from_text(entry.plan) if entry.plan else None
    except (protobuf.DecodeError, ValueError):
        return None
    alike = len(entry.functions) == len(key.functions) and len(entry.feeds) == len(key.feeds)
    if entry.key != key.text or not alike:
        return None
    program = Program(
        entry.answer, list(entry.launches), entry.needs_engine, plan, user_op_calls=list(entry.user_op_calls)
    )
    return with_new_names(program, entry.functions, entry.feeds, key)


def with_new_names(program: Program, functions: Sequence[str], feeds: Sequence[str], key: Key) -> Program:
    """Returns the program with new function and feed names of this process."""
    base = f"{key.functions[0]}_lowered_{next(_serial)}"
    cached_names = dict(zip(functions, key.functions))
    new_names = {function.signature.name: f"{base}_{index}" for index, function in enumerate(program.answer.functions)}
    renaming = _Renaming({**cached_names, **new_names}, dict(zip(feeds, key.feeds)), base)
    answer = type(program.answer)()
    answer.CopyFrom(program.answer)
    renaming.change(answer.node)
    for function in answer.functions:
        function.signature.name = new_names[function.signature.name]
        for node in function.node_def:
            renaming.change(node)
    if answer.run_group:
        answer.run_group = base
    return dataclasses.replace(
        program, answer=answer, launches=[new_names.get(name, name) for name in program.launches]
    )


@dataclasses.dataclass(frozen=True)
class _Renaming:
    functions: Mapping[str, str]
    feeds: Mapping[str, str]
    run_group: str

    def change(self, node: node_def_pb2.NodeDef) -> None:
        for function in _functions_of(node):
            function.name = self.functions.get(function.name, function.name)
        for name in _FEED_ATTRIBUTES:
            if name in node.attr:
                tensor_name = node.attr[name].s.decode()
                node.attr[name].s = self.feeds.get(tensor_name, tensor_name).encode()
        if _RUN_GROUP in node.attr and node.attr[_RUN_GROUP].s:
            node.attr[_RUN_GROUP].s = self.run_group.encode()


class _Names:
    """The functions and feed ids of a program in an order that its ops determine."""

    def __init__(self, request: ProgramRequest) -> None:
        self.functions: dict[str, int] = {request.function: 0}
        self.feeds: dict[str, int] = {}
        for name in _worklist(self.functions):
            for node in request.library[name].node_def:
                for called in _functions_of(node):
                    if called.name in request.library:
                        self.functions.setdefault(called.name, len(self.functions))
                for attribute in _FEED_ATTRIBUTES:
                    if attribute in node.attr and node.attr[attribute].s:
                        self.feeds.setdefault(node.attr[attribute].s.decode(), len(self.feeds))

    def described(self, function: function_pb2.FunctionDef) -> bytes:
        """Returns a function's bytes without generated names."""
        copy = copy_function(function)
        copy.signature.name = f"function_{self.functions[function.signature.name]}"
        for attribute in _UNUSED_ATTRIBUTES:
            if attribute in copy.attr:
                del copy.attr[attribute]
        for attributes in copy.arg_attr.values():
            attributes.attr.pop(_NAME_OF_ARGUMENT, None)
        _number_arguments(copy)
        _number_results(copy)
        functions = {name: f"function_{index}" for name, index in self.functions.items()}
        renaming = _Renaming(functions, {name: f"feed_{index}" for name, index in self.feeds.items()}, "")
        for node in copy.node_def:
            renaming.change(node)
            node.attr.pop(_GRADIENT, None)
        return bytes(copy.SerializeToString(deterministic=True))


def _functions_of(node: node_def_pb2.NodeDef) -> Iterator[attr_value_pb2.NameAttrList]:
    """Yields the functions that an op of any type refers to."""
    for attribute in sorted(node.attr):
        yield from op_types.functions_in(node.attr[attribute])


def _stable_names(names: Sequence[str]) -> list[str]:
    """Returns variable names, with numbers for unnamed ones: the same for the same resource."""
    unnamed: dict[str, int] = {}
    return [
        f"{_UNNAMED}{unnamed.setdefault(name, len(unnamed))}" if name.startswith(_UNNAMED) else name for name in names
    ]


def _number_arguments(function: function_pb2.FunctionDef) -> None:
    """Renames a function's arguments to their index: in loops their names contain function names."""
    numbered = {argument.name: f"argument_{i}" for i, argument in enumerate(function.signature.input_arg)}
    for argument in function.signature.input_arg:
        argument.name = numbered[argument.name]
    for node in function.node_def:
        for i, tensor_name in enumerate(node.input):
            if tensor_name in numbered:
                node.input[i] = numbered[tensor_name]
    for result, tensor_name in list(function.ret.items()):
        if tensor_name in numbered:
            function.ret[result] = numbered[tensor_name]


def _number_results(function: function_pb2.FunctionDef) -> None:
    """Renames a function's results to their index: in loops their names contain tensor names."""
    returned = dict(function.ret)
    function.ret.clear()
    for i, result in enumerate(function.signature.output_arg):
        function.ret[f"result_{i}"] = returned[result.name]
        result.name = f"result_{i}"


def _worklist(names: Mapping[str, int]) -> Iterator[str]:
    """Yields names in order, including those appended during iteration."""
    done = 0
    while done < len(names):
        yield from list(names)[done : (done := len(names))]


def _has_state_in_remote_buffers(request: ProgramRequest, device: IpuDevice) -> bool:
    """Returns whether the device chooses the memory of optimizer state, and has remote buffers for it."""
    with_them, without = (
        read_storage_options(request.library, device.options, 1, has).offloaded for has in (True, False)
    )
    return device.has_remote_buffers and with_them != without


def _configuration(options: Any) -> bytes:
    copy = type(options)()
    copy.CopyFrom(options)
    for field in _NOT_OF_THE_PROGRAM:
        copy.ClearField(field)
    return bytes(copy.SerializeToString(deterministic=True))


@functools.cache
def _sources() -> str:
    """Returns a digest of the code that lowers and plans, for development between releases."""
    digest = hashlib.sha256()
    package = pathlib.Path(tf_ipu_shim.__file__).parent
    for folder in _ROOMS:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
