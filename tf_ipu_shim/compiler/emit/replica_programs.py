"""Emits each replica of a program and combines them into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tf_ipu_shim.compiler.emit import step_sends
from tf_ipu_shim.compiler.emit.emit import Emitter
from tf_ipu_shim.compiler.ir import calls, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.ir.functions import AS_WRITTEN, Functions
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest, ReplicaVariable
from tf_ipu_shim.compiler.lowering_state import LoweringState
from tf_ipu_shim.compiler.placement.placement import Placement, Placer
from tf_ipu_shim.compiler.replicas import replicas
from tf_ipu_shim.compiler.replicas.replicas import Replica
from tf_ipu_shim.machine.ids import Chip
from tf_ipu_shim.plugin.library import Call
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


def emit_replicas(state: LoweringState) -> None:
    """Places and emits each replica, and combines them into one program."""
    programs: dict[bytes, function_pb2.FunctionDef] = {}
    emissions = []
    for replica in state.replicas if state.options.runs else state.replicas[:1]:
        functions, placer = replicas.replica_functions(state.functions, replica), state.placer
        if functions is not state.functions:
            placer = Placer(functions, replica.shards, line_of=state.diagnostics.user_line)
        placement = placer.place(functions.entry)
        emissions.append(_emit(state.call, state.request, functions, placement, replica, programs))
    state.compiled = [program for emission in emissions for program in emission.emitter.compiled]
    state.program = _combine_replicas(state.request, emissions, len(state.replicas))


def describe_runs(state: LoweringState) -> None:
    """Records the elements that one run enqueues, and which runs may not overlap."""
    program, functions = state.program, state.functions
    program.enqueues = state.enqueues
    if functions.with_ops(frozenset({vocabulary.SEND_TO_HOST})):
        step_sends.share_step_rendezvous(program)
    communicating = vocabulary.INFEEDS | {vocabulary.OUTFEED_ENQUEUE} | vocabulary.COLLECTIVES
    if len(state.replicas) > 1 or functions.with_ops(communicating):
        program.run_group = state.group  # two runs at once would take each other's elements


@dataclasses.dataclass
class _Emission:
    """The lowered form of one replica."""

    name: str
    functions: list[function_pb2.FunctionDef]
    traced: dict[str, str]
    emitter: Emitter
    graph: FunctionGraph
    variable_chips: list[Chip]


def _emit(
    call: Call,
    request: ProgramRequest,
    functions: Functions,
    placement: Placement,
    replica: Replica,
    programs: dict[bytes, function_pb2.FunctionDef],
) -> _Emission:
    def constant_arguments(definition: function_pb2.FunctionDef, arguments: int) -> list[bool]:
        library = function_pb2.FunctionDefLibrary(function=[*functions.written_definitions, definition])
        return call.constant_arguments(library.SerializeToString(), definition.signature.name, arguments)

    emitter = Emitter(functions, _device_of(request), constant_arguments, replica, programs, plans=True)
    name, _ = emitter.emit(functions.entry, placement, {})
    graph = functions[functions.entry]
    definitions = [*functions.written_definitions, *emitter.functions]
    traced = {name: written.traced for name, written in functions.written.items()}
    return _Emission(name, definitions, traced, emitter, graph, _variable_chips(graph, placement, replica))


def _combine_replicas(request: ProgramRequest, emissions: list[_Emission], count: int) -> LoweredProgram:
    """Combines the emitted replicas into one program with the op that runs them."""
    first = emissions[0]
    program = LoweredProgram(
        node_def_pb2.NodeDef(name=request.name, device=_device_of(request)),
        list({id(function): function for emission in emissions for function in emission.functions}.values()),
        first.variable_chips,
        list(range(len(request.arg_types))),
        [cluster for emission in emissions for cluster in emission.emitter.clusters],
        [exchange for emission in emissions for exchange in emission.emitter.exchanges],
    )
    program.shard_chips = first.emitter.replica.chips
    for emission in emissions:
        program.traced.update(emission.traced)
    planned = first.emitter.planned
    program.chunked_loops = first.emitter.chunked_loops
    if planned is not None:
        program.planned_functions, program.planned_clusters = planned.functions, planned.clusters
    program.replicas = count
    if count > 1:
        _run_replicas(program, request, emissions)
    elif not _run_single_launch(program, first):
        _run_function(program, first.name, request.arg_types, first.graph)
    return program


def _run_function(program: LoweredProgram, name: str, types: Sequence[int], graph: FunctionGraph) -> None:
    """Makes the program's op call a function with these arguments."""
    calls.make_call(program.node, types, graph.return_types, name, AS_WRITTEN)


def _run_replicas(program: LoweredProgram, request: ProgramRequest, emissions: list[_Emission]) -> None:
    """Makes the program's op run all replicas at the same time, each with separate variables."""
    first, replica = emissions[0], emissions[0].emitter.replica
    program.shards, program.first_replica = replica.shards, first.name
    variables = [index for index, ipu in enumerate(first.variable_chips) if ipu >= 0]
    names = [list(first.graph.arguments)[index] for index in variables]
    called, emitted_names = f"{first.name}_replicas", [emission.name for emission in emissions]
    definition = request.library[request.function]
    program.functions.append(
        replicas.run_all_replicas(called, definition, emitted_names, program.node.device, names, replica.group)
    )
    program.replica_variables.extend(
        ReplicaVariable(variable, Chip(index * replica.shards + first.variable_chips[variable]))
        for index in range(1, len(emissions))
        for variable in variables
    )
    copies = [request.arg_types[variable] for variable, _ in program.replica_variables]
    _run_function(program, called, [*request.arg_types, *copies], first.graph)


def _device_of(request: ProgramRequest) -> str:
    return f"/device:IPU:{request.ordinal}"


def _run_single_launch(program: LoweredProgram, emission: _Emission) -> bool:
    """Makes the program's op the launch itself if it is the only op; returns whether it did.

    That saves a function call. The launch's inputs are the call's in another order (XLA wants compile-time constants
    first, and resources last), and without unused ones.
    """
    emitted = next(function for function in emission.emitter.functions if function.signature.name == emission.name)
    if len(emitted.node_def) != 1 or emitted.node_def[0].op != vocabulary.LAUNCH:
        return False
    launch, results = emitted.node_def[0], len(emission.graph.returns)
    returned = [emitted.ret[result.name] for result in emitted.signature.output_arg]
    if returned != [f"{launch.name}:results:{index}" for index in range(results)]:
        return False
    if len(launch.attr["Tresults"].list.type) != results:
        return False
    positions = {argument: index for index, argument in enumerate(emission.graph.arguments)}
    program.inputs = [positions[tensor_name] for tensor_name in launch.input]
    name, device = program.node.name, program.node.device
    program.node.CopyFrom(launch)
    program.node.name, program.node.device = name, device
    del program.node.input[:]
    return True


def _variable_chips(graph: FunctionGraph, placement: Placement, replica: Replica) -> list[Chip]:
    homes = [placement.variable_homes.get(name) for name in graph.arguments]
    return [Chip(-1) if home is None or home.shard is None else replica.chip(home.shard) for home in homes]
