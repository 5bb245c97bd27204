"""What the plugin calls when a program runs for the first time under a configuration."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2

from tf_ipu_shim.accounting import memory_plan
from tf_ipu_shim.compiling import compilation
from tf_ipu_shim.lowering import pipelines, randomness, replicas, vocabulary
from tf_ipu_shim.lowering.chunks import with_chunks
from tf_ipu_shim.lowering.diagnostics import Diagnostics, refuse_uncompilable
from tf_ipu_shim.lowering.emit import Emitter
from tf_ipu_shim.lowering.emit_cluster import Unmarked
from tf_ipu_shim.lowering.function_graph import FunctionGraph
from tf_ipu_shim.lowering.origins import Origins
from tf_ipu_shim.lowering.placement import Placement, Placer
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime.device import IpuDevice

_serial = itertools.count()


def lower_bytes(library: Library, device_of: Callable[[int], IpuDevice], call: Call, request: bytes) -> bytes:
    """Lowers what the plugin sends, and plans its memory.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal, attached to its IPUs.
        call: lets the lowering question the TensorFlow runtime.
        request: a serialised `GraphDef` (see `Library.set_lowering`).
    """
    parsed = parse_request(graph_pb2.GraphDef.FromString(request))
    device = device_of(parsed.ordinal)
    program = lower(library, call, parsed, device.num_ipus)
    if memory_plan.enabled():
        # On a real IPU iterations come one by one, and so do elements.
        planned = lower(library, call, parsed, device.num_ipus, chunks=False) if program.has_chunks else program
        memory_plan.plan_memory(parsed, planned, device, Diagnostics(call, program.origins).user_line)
    answer = answer_of(program)
    compilation.describe(answer, parsed, program, device.options.profiling)
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
        origins,
        [cluster for emission in emissions for cluster in emission.emitter.clusters],
        [exchange for emission in emissions for exchange in emission.emitter.exchanges],
    )
    node, device = program.node, _device_of(request)
    if len(emissions) == 1:
        single = _single_launch(first.emitter, first.name, first.graph)
        if single is not None:
            node.CopyFrom(single)
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
        node.attr["_run_group"].s = replica.group.encode()
        for index in range(1, len(emissions)):
            types.extend(request.arg_types[variable] for variable in variables)
            node.attr["_replica_variables"].list.i.extend(variables)
            node.attr["_replica_chips"].list.i.extend(
                index * replica.shards + first.variable_ipus[variable] for variable in variables
            )
    node.op, node.device = "StatefulPartitionedCall", device
    node.attr["Tin"].list.type.extend(types)
    node.attr["Tout"].list.type.extend(first.graph.return_types)
    node.attr["f"].func.name = called
    node.attr["config"].s = node.attr["config_proto"].s = node.attr["executor_type"].s = b""
    return program


def _device_of(request: ProgramRequest) -> str:
    return f"/device:IPU:{request.ordinal}"


def _single_launch(emitter: Emitter, name: str, graph: FunctionGraph) -> node_def_pb2.NodeDef | None:
    """The launch itself where it is all there is, and gives what the call does: saves a function call.

    Its inputs are the call's in another order (XLA wants compile-time constants first, and resources last), and
    without those that nothing uses; `_input_order` tells the plugin.
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
    order = [positions[text] for text in launch.input]
    if positions and not order:
        return None  # an empty list would say that the order is the call's
    if order != list(range(len(positions))):
        copy.attr["_input_order"].list.i.extend(order)
    return copy


def _variable_ipus(graph: FunctionGraph, placement: Placement) -> list[int]:
    homes = [placement.variable_homes.get(name) for name in graph.arguments]
    return [-1 if home is None or home.ipu is None else home.ipu for home in homes]


def parse_request(graph: graph_pb2.GraphDef) -> ProgramRequest:
    """Reads what the plugin sends (see `program_op.cc`)."""
    (node,) = graph.node

    def shape(proto: object) -> tuple[int, ...]:
        return tuple(dim.size for dim in proto.dim)  # type: ignore[attr-defined]

    return ProgramRequest(
        name=node.name,
        function=node.attr["_function"].s.decode(),
        ordinal=node.attr["_ordinal"].i,
        library={function.signature.name: function for function in graph.library.function},
        arg_types=list(node.attr["Tin"].list.type),
        arg_shapes=[shape(proto) for proto in node.attr["_arg_shapes"].list.shape],
        variable_names=[name.decode() for name in node.attr["_variable_names"].list.s],
        variable_types=list(node.attr["_variable_types"].list.type),
        variable_shapes=[shape(proto) for proto in node.attr["_variable_shapes"].list.shape],
    )


def answer_of(program: LoweredProgram) -> graph_pb2.GraphDef:
    """Writes what the plugin reads."""
    answer = graph_pb2.GraphDef(node=[program.node])
    answer.node[0].attr["_variable_chips"].list.i.extend(program.variable_ipus)
    answer.library.function.extend(program.functions)
    return answer


class _Graphs(dict[str, FunctionGraph]):
    """Function graphs by name, parsed when first asked for: most bodies are never looked into."""

    def __init__(self, request: ProgramRequest) -> None:
        super().__init__()
        self._library = request.library

    def __missing__(self, name: str) -> FunctionGraph:
        graph = self[name] = FunctionGraph(self._library[name])
        return graph
