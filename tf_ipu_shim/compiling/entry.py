"""What the plugin calls when a program runs for the first time under a configuration."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import message as protobuf
from tensorflow.core.framework import function_pb2, node_def_pb2

from tf_ipu_shim import errors
from tf_ipu_shim.accounting import memory_plan
from tf_ipu_shim.compiling import compilation
from tf_ipu_shim.compiling.engine_needed import needs_engine
from tf_ipu_shim.lowering import pipelines, randomness, replicas, vocabulary
from tf_ipu_shim.lowering.chunks import with_chunks
from tf_ipu_shim.lowering.diagnostics import Diagnostics, refuse_uncompilable
from tf_ipu_shim.lowering.emit import Emitter
from tf_ipu_shim.lowering.emit_cluster import Unmarked
from tf_ipu_shim.lowering.function_graph import FunctionGraph
from tf_ipu_shim.lowering.origins import Origins
from tf_ipu_shim.lowering.placement import Placement, Placer
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime.device import IpuDevice

_serial = itertools.count()


def lower_bytes(library: Library, device_of: Callable[[int], IpuDevice], call: Call, request: bytes) -> bytes:
    """Lowers what the plugin sends, and plans its memory.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal, attached to its IPUs.
        call: lets the lowering question the TensorFlow runtime.
        request: a serialised `ProgramRequest`.

    Returns:
        A serialised `ProgramAnswer`.
    """
    parsed = parse_request(request)
    device = device_of(parsed.ordinal)
    program = lower(library, call, parsed, device.num_ipus)
    if memory_plan.enabled():
        # On a real IPU iterations come one by one, and so do elements.
        planned = lower(library, call, parsed, device.num_ipus, chunks=False) if program.has_chunks else program
        memory_plan.plan_memory(parsed, planned, device, Diagnostics(call, program.origins).user_line)
    answer = answer_of(program)
    if needs_engine(parsed, program):
        answer.compilation.CopyFrom(compilation.describe(parsed, program, device.options.profiling))
    return answer.SerializeToString()


def lower(plugin: Library, call: Call, request: ProgramRequest, num_ipus: int, chunks: bool = True) -> LoweredProgram:
    """Turns a traced function into XLA programs, exchanges and host ops.

    Args:
        plugin: the loaded plugin.
        call: lets the lowering question the TensorFlow runtime.
        request: the traced function and its arguments.
        num_ipus: IPUs that the program may use.
        chunks: whether loops of small iterations may run several of them in one XLA program.

    Raises:
        InvalidArgumentError: a mark names an IPU that there is not, or XLA cannot compile an op.
    """
    pipelines.check_counts(request.library.values())
    origins = Origins(request.library)
    library, function = randomness.with_seeds(request.library, request.function, request.ordinal, origins)
    has_chunks = False
    emissions: list[_Emission] = []
    programs: dict[bytes, function_pb2.FunctionDef] = {}
    for replica in replicas.replicas_of(library.values(), num_ipus, f"{request.function}_{next(_serial)}"):
        own, called = replicas.library_of(library, function, replica, origins)
        in_chunks = _with_chunks(own, called, request, replica, origins) if chunks and replica.count == 1 else None
        if in_chunks is not None:
            own, has_chunks = in_chunks, True
        added = [definition for name, definition in own.items() if definition is not request.library.get(name)]
        emissions.append(
            _emit(call, dataclasses.replace(request, library=own, function=called), replica, added, programs)
        )
    for emission in emissions:
        refuse_uncompilable(plugin, Diagnostics(call, origins), emission.library, emission.emitter.compiled)
    program = _joined(request, emissions, origins)
    program.has_chunks = has_chunks
    return program


def _with_chunks(
    library: Mapping[str, function_pb2.FunctionDef],
    function: str,
    request: ProgramRequest,
    replica: replicas.Replica,
    origins: Origins,
) -> Mapping[str, function_pb2.FunctionDef] | None:
    graphs = _Graphs(dataclasses.replace(request, library=library))
    return with_chunks(library, function, graphs, Placer(graphs, replica.shards), origins)


@dataclasses.dataclass
class _Emission:
    """What one replica is lowered to: the name of its function, its library, and the functions that are new."""

    name: str
    library: Mapping[str, function_pb2.FunctionDef]
    functions: list[function_pb2.FunctionDef]
    emitter: Emitter
    graph: FunctionGraph
    variable_ipus: list[int]


def _emit(
    call: Call,
    request: ProgramRequest,
    replica: replicas.Replica,
    added: list[function_pb2.FunctionDef],
    programs: dict[bytes, function_pb2.FunctionDef],
) -> _Emission:
    graphs = _Graphs(request)
    apart = vocabulary.COLLECTIVES if replica.count > 1 else frozenset[str]()
    placement = Placer(graphs, replica.shards, apart_ops=apart).place(request.function)
    unmarked = Unmarked(request.library)

    def constant_arguments(definition: function_pb2.FunctionDef, arguments: int) -> list[bool]:
        library = function_pb2.FunctionDefLibrary(function=[*added, *unmarked.functions, definition])
        return call.constant_arguments(library.SerializeToString(), definition.signature.name, arguments)

    emitter = Emitter(graphs, unmarked, _device_of(request), constant_arguments, replica, programs)
    name, _ = emitter.emit(request.function, placement, {})
    graph = graphs[request.function]
    functions = [*added, *unmarked.functions, *emitter.functions]
    return _Emission(name, request.library, functions, emitter, graph, _variable_ipus(graph, placement))


def _joined(request: ProgramRequest, emissions: list[_Emission], origins: Origins) -> LoweredProgram:
    first = emissions[0]
    program = LoweredProgram(
        node_def_pb2.NodeDef(name=request.name),
        list({id(function): function for emission in emissions for function in emission.functions}.values()),
        first.variable_ipus,
        list(range(len(request.arg_types))),
        origins,
        [cluster for emission in emissions for cluster in emission.emitter.clusters],
        [exchange for emission in emissions for exchange in emission.emitter.exchanges],
    )
    node, device = program.node, _device_of(request)
    if len(emissions) == 1:
        single = _single_launch(first.emitter, first.name, first.graph)
        if single is not None:
            launch, program.inputs = single
            node.CopyFrom(launch)
            node.name, node.device = request.name, device
            return program
    types, called = list(request.arg_types), first.name
    if len(emissions) > 1:
        replica = first.emitter.replica
        program.replicas, program.shards, program.first_replica = len(emissions), replica.shards, first.name
        variables = [index for index, ipu in enumerate(first.variable_ipus) if ipu >= 0]
        called = f"{first.name}_replicas"
        names = [list(first.graph.arguments)[index] for index in variables]
        definition = request.library[request.function]
        program.functions.append(
            replicas.joined(called, definition, [emission.name for emission in emissions], device, names)
        )
        program.run_group = replica.group
        for index in range(1, len(emissions)):
            types.extend(request.arg_types[variable] for variable in variables)
            program.replica_variables.extend(
                (variable, index * replica.shards + first.variable_ipus[variable]) for variable in variables
            )
    node.op, node.device = "StatefulPartitionedCall", device
    node.attr["Tin"].list.type.extend(types)
    node.attr["Tout"].list.type.extend(first.graph.return_types)
    node.attr["f"].func.name = called
    node.attr["config"].s = node.attr["config_proto"].s = node.attr["executor_type"].s = b""
    return program


def _device_of(request: ProgramRequest) -> str:
    return f"/device:IPU:{request.ordinal}"


def _single_launch(emitter: Emitter, name: str, graph: FunctionGraph) -> tuple[node_def_pb2.NodeDef, list[int]] | None:
    """The launch itself where it is all there is, and gives what the call does: saves a function call.

    Its inputs are the call's in another order (XLA wants compile-time constants first, and resources last), and
    without those that nothing uses.

    Returns:
        The launch, and for each of its inputs the argument that it is; None where there is more to do.
    """
    emitted = next(function for function in emitter.functions if function.signature.name == name)
    if len(emitted.node_def) != 1 or emitted.node_def[0].op != vocabulary.LAUNCH:
        return None
    launch = emitted.node_def[0]
    results = [f"{launch.name}:results:{index}" for index in range(len(graph.returns))]
    returned = [emitted.ret[result.name] for result in emitted.signature.output_arg]
    if returned != results or len(launch.attr["Tresults"].list.type) != len(results):
        return None
    copy = node_def_pb2.NodeDef()
    copy.CopyFrom(launch)
    del copy.input[:]
    positions = {argument: index for index, argument in enumerate(graph.arguments)}
    return copy, [positions[text] for text in launch.input]


def _variable_ipus(graph: FunctionGraph, placement: Placement) -> list[int]:
    homes = [placement.variable_homes.get(name) for name in graph.arguments]
    return [-1 if home is None or home.ipu is None else home.ipu for home in homes]


def parse_request(request: bytes) -> ProgramRequest:
    """Reads what the plugin sends.

    Args:
        request: a serialised `program_pb2.ProgramRequest`.

    Raises:
        PluginError: it is none, or names a function that it does not bring.
    """
    try:
        message = program_pb2.ProgramRequest.FromString(request)
    except protobuf.DecodeError as error:
        raise errors.PluginError(f"The plugin sent {len(request)} bytes, no ProgramRequest: {error}.") from error
    library = {function.signature.name: function for function in message.library.function}
    if message.function not in library:
        raise errors.PluginError(
            f"The plugin asks for function {message.function!r} of program {message.name!r}, and sent "
            f"{sorted(library) or 'no functions'}."
        )
    if len(message.arguments) != len(library[message.function].signature.input_arg):
        raise errors.PluginError(
            f"The plugin sent {len(message.arguments)} arguments for {message.function!r} of program "
            f"{message.name!r}, which takes {len(library[message.function].signature.input_arg)}."
        )
    return ProgramRequest(
        name=message.name,
        function=message.function,
        ordinal=message.ordinal,
        library=library,
        arg_types=[argument.type for argument in message.arguments],
        arg_shapes=[_shape(argument.shape) for argument in message.arguments],
        variable_names=[argument.variable.name for argument in message.arguments],
        variable_types=[argument.variable.type for argument in message.arguments],
        variable_shapes=[_shape(argument.variable.shape) for argument in message.arguments],
    )


def _shape(proto: Any) -> tuple[int, ...]:
    return tuple(dim.size for dim in proto.dim)


def answer_of(program: LoweredProgram) -> Any:
    """What the plugin is told of a program, but for its compilation: a `program_pb2.ProgramAnswer`."""
    return program_pb2.ProgramAnswer(
        node=program.node,
        functions=program.functions,
        variable_chips=program.variable_ipus,
        inputs=program.inputs,
        replica_variables=[
            program_pb2.ReplicaVariable(argument=argument, chip=chip) for argument, chip in program.replica_variables
        ],
        run_group=program.run_group,
    )


class _Graphs(dict[str, FunctionGraph]):
    """Function graphs by name, parsed when first asked for: most bodies are never looked into."""

    def __init__(self, request: ProgramRequest) -> None:
        super().__init__()
        self._library = request.library

    def __missing__(self, name: str) -> FunctionGraph:
        graph = self[name] = FunctionGraph(self._library[name])
        return graph
