"""Profiles ops that a session step runs on a device outside compiled programs, as if they were one program.

On a real system these ops are compiled together; here TensorFlow's kernels have run them when this is asked, one by
one. So all shapes are known. Ops without an XLA kernel, transfers to other devices and nested programs are outside the
program: their inputs are its results, and their outputs are its arguments.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, cast

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import TensorName, awaited_nodes, data_inputs
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.passes import legacy_calls
from tf_ipu_shim.driver import compilation, planned_program, profiles, program_requests
from tf_ipu_shim.driver.engine_needed import may_compute, needs_engine
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.memory_model import bug_report
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import log, trace
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import function_pb2, graph_pb2, node_def_pb2, types_pb2

NAME = "cluster"
"""The name of such a program, as in Graphcore's TensorFlow."""

_AROUND = frozenset({"_Arg", "_Retval", "VarHandleOp"})
_EDGE = re.compile(r"^edge_\d+_")
_FED = re.compile(r"^_arg_(.*)_\d+_\d+$")
_serial = itertools.count()

Tensor = tuple[str, int]
"""A node's name and the number of its output."""


def profile_step(library: Library, call: Call, message: Any, device: IpuDevice) -> bytes:
    """Writes the profile of a step's ops, if requested."""
    answer = program_pb2.ProgramAnswer()
    ops = message.plain_ops
    nodes = [node for node in ops.graph.node if node.op not in _AROUND and vocabulary.CHIP_ATTRIBUTE not in node.attr]
    around = set(library.uncompilable(graph_pb2.GraphDef(node=nodes).SerializeToString()))
    inside = _without_crossing_lists([node for node in nodes if node.name not in around], ops.graph)
    seen = {node.node: node.inputs for node in ops.nodes}
    request = _Program(ops.graph, inside, seen).request(Device(message.ordinal))
    profiled = None if request is None else _profile_program(Job(library, call, request, device))
    if request is not None and profiled is not None:
        _describe(answer, request, profiled, device)
    elif device.options.profiling.enable_ipu_trace_events and _mark_computed(inside, seen):
        events = trace.events_of(message.ordinal, NAME, device.options.profiling, [])
        answer.compilation.CopyFrom(program_pb2.Compilation(module=NAME, events=events))
    return cast(bytes, answer.SerializeToString())


def _describe(
    answer: Any, request: ProgramRequest, profiled: planned_program.ProfiledProgram, device: IpuDevice
) -> None:
    if not needs_engine(request, profiled.program):
        return
    variables = [0 if kind else -1 for kind in request.variable_types]
    described = compilation.describe(request, (), variables, device.options.profiling, details=profiled.details)
    described.variables.extend(request.variable_names)
    answer.compilation.CopyFrom(described)
    profiles.add_to(answer.compilation, profiled.run_log)


def _mark_computed(inside: Iterable[node_def_pb2.NodeDef], seen: Container[str]) -> bool:
    return any(node.name in seen and may_compute(node.op) for node in inside)


def _without_crossing_lists(
    inside: Iterable[node_def_pb2.NodeDef], graph: graph_pb2.GraphDef
) -> list[node_def_pb2.NodeDef]:
    """Returns a program's nodes without those that pass TensorLists across its boundary.

    So it is where TensorFlow takes a session's loop apart: the lists go round it.
    """
    remaining_nodes = {node.name: node for node in inside}
    sources = {node.name: node for node in graph.node}
    lists = [
        (tensor[0], node.name)
        for node in graph.node
        for tensor in _inputs_of(node)
        if tensor[0] in remaining_nodes or node.name in remaining_nodes
        if _is_list(sources[tensor[0]], tensor[1])
    ]
    remaining = lists
    while remaining:
        remaining = [pair for pair in lists if len({*pair} & remaining_nodes.keys()) == 1]
        for pair in remaining:
            for name in pair:
                remaining_nodes.pop(name, None)
    return list(remaining_nodes.values())


def _is_list(node: node_def_pb2.NodeDef, number: int) -> bool:
    types = [kind for types in op_types.output_types(node).values() for kind in types]
    return number < len(types) and types[number] == types_pb2.DT_VARIANT


def _profile_program(job: Job) -> planned_program.ProfiledProgram | None:
    """Returns the program, or None if it cannot be built; the ops have run, so no error is raised."""
    try:
        return planned_program.profile_uncompiled(job)
    except (errors.OpError, NotImplementedError, ValueError) as error:
        log.info(f"The ops of a session on {job.device.name} have no profile: {error}")
    except Exception as error:
        bug_report.warn(job.request, error, "not at all")
    return None


@dataclasses.dataclass
class _Argument:
    """An input of the program: the argument's name and what is known of its first value."""

    name: str
    value: Any


class _Program:
    """Nodes of a graph as a function."""

    def __init__(
        self, graph: graph_pb2.GraphDef, inside: Iterable[node_def_pb2.NodeDef], seen: Mapping[str, Any]
    ) -> None:
        self._graph, self._seen = graph, seen
        self._inside = {node.name: node for node in inside}
        self._functions = {function.signature.name: function for function in graph.library.function}
        self._arguments: dict[Tensor, _Argument] = {}
        self._names: set[str] = set()

    def request(self, ordinal: Device) -> ProgramRequest | None:
        """Returns the program as a call of its function; None if empty or an argument is missing."""
        if not self._inside:
            return None
        self._find_arguments()
        if any(argument.value is None for argument in self._arguments.values()):
            return None
        # What is fed comes before variables, as in programs that a script compiles.
        in_order = sorted(self._arguments.items(), key=lambda item: item[1].value.type == types_pb2.DT_RESOURCE)
        self._arguments = dict(in_order)
        arguments = list(self._arguments.values())
        function = self._function()
        library = legacy_calls.convert_legacy_calls({**self._functions, function.signature.name: function})
        values = [argument.value for argument in arguments]
        return program_requests.make_call(NAME, function.signature.name, ordinal, library, values)

    def _find_arguments(self) -> None:
        sources = {node.name: node for node in self._graph.node}
        for node in self._inside.values():
            for number, tensor in enumerate(_inputs_of(node)):
                if tensor[0] in self._inside:
                    continue
                known = self._arguments.get(tensor)
                if known is None:
                    known = _Argument(self._unused(_name_of(sources[tensor[0]])), None)
                    self._arguments[tensor] = known
                inputs = self._seen.get(node.name, ())
                if known.value is None and number < len(inputs) and inputs[number].type != types_pb2.DT_INVALID:
                    known.value = inputs[number]

    def _unused(self, base_name: str) -> str:
        """Returns an unused argument name."""
        plain = re.sub(r"[^a-z0-9_]", "_", base_name.lower()).lstrip("_0123456789") or "argument"
        name = plain
        for number in itertools.count(1):
            if name not in self._names:
                break
            name = f"{plain}_{number}"
        self._names.add(name)
        return name

    def _function(self) -> function_pb2.FunctionDef:
        function = function_pb2.FunctionDef()
        function.signature.name = f"{NAME}_{next(_serial)}"
        for argument in self._arguments.values():
            function.signature.input_arg.add(name=argument.name, type=argument.value.type)
        for node in self._inside.values():
            new_node = function.node_def.add()
            new_node.CopyFrom(node)
            del new_node.input[:]
            new_node.input.extend(self._name(tensor) for tensor in _inputs_of(node))
            new_node.input.extend(f"^{name}" for name in awaited_nodes(node) if name in self._inside)
            if op_types.is_stateful(node.op) and node.op != "ReadVariableOp":
                function.signature.control_output.append(node.name)
                function.control_ret[node.name] = node.name
        for number, tensor in enumerate(self._results()):
            name = f"result_{number}"
            function.signature.output_arg.add(name=name, type=self._types(tensor[0])[tensor[1]])
            function.ret[name] = self._name(tensor)
        return function

    def _results(self) -> list[Tensor]:
        """Returns the results: tensors that ops outside the program use."""
        operands = (tensor for node in self._graph.node if node.name not in self._inside for tensor in _inputs_of(node))
        return sorted({tensor for tensor in operands if tensor[0] in self._inside})

    def _types(self, name: str) -> list[int]:
        return [kind for types in op_types.output_types(self._inside[name]).values() for kind in types]

    def _name(self, tensor: Tensor) -> str:
        if tensor in self._arguments:
            return self._arguments[tensor].name
        name, number = tensor
        for output, types in op_types.output_types(self._inside[name]).items():
            if number < len(types):
                return f"{name}:{output}:{number}"
            number -= len(types)
        raise LookupError(f"{name} has no output {tensor[1]}.")


def _inputs_of(node: node_def_pb2.NodeDef) -> Iterator[Tensor]:
    for tensor_name in data_inputs(node):
        name, _, index = TensorName.parse(tensor_name)
        yield name, index


def _name_of(node: node_def_pb2.NodeDef) -> str:
    """Returns a readable name of a tensor from outside the program."""
    name = _EDGE.sub("", node.attr["tensor_name"].s.decode()) if "tensor_name" in node.attr else node.name
    fed = _FED.match(name)
    return fed.group(1) if fed else name
