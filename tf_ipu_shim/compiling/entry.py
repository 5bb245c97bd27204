"""What the plugin calls when a program runs for the first time under a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

from google.protobuf import message as protobuf

from tf_ipu_shim import errors
from tf_ipu_shim.accounting import memory_plan
from tf_ipu_shim.accounting.computations import ComputeSetNames
from tf_ipu_shim.compiling import applications, cached_programs, compilation, profiles
from tf_ipu_shim.compiling.cached_programs import Program
from tf_ipu_shim.compiling.engine_needed import needs_engine
from tf_ipu_shim.compiling.execution_choice import choose
from tf_ipu_shim.compiling.profiles import RunLog
from tf_ipu_shim.lowering import legacy_calls
from tf_ipu_shim.lowering.diagnostics import Diagnostics
from tf_ipu_shim.lowering.execution import execution_of, settled
from tf_ipu_shim.lowering.kernels import by_kernels
from tf_ipu_shim.lowering.lower import lower
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.machine.ways import AUTO, KERNELS, XLA
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import executable_cache, log
from tf_ipu_shim.runtime.device import PRE_COMPILE, IpuDevice


def lower_bytes(library: Library, device_of: Callable[[int, bool], IpuDevice], call: Call, request: bytes) -> bytes:
    """Lowers what the plugin sends, and plans its memory.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal; the second argument says whether to attach to its IPUs.
        call: lets the lowering question the TensorFlow runtime.
        request: a serialised `ProgramRequest`.

    Returns:
        A serialised `ProgramAnswer`.
    """
    message = _read(request)
    parsed = _parsed(message)
    to_file = message.HasField("application")
    device = device_of(parsed.ordinal, not to_file)
    if to_file:
        by_xla, _, plan, _ = _runs_as(library, call, parsed, device)
        _keep(parsed, device, plan)
        path = applications.write(library, parsed, message.application, by_xla, device)
        return cast(bytes, program_pb2.ProgramAnswer(application_file=path).SerializeToString())
    lowered = _pre_compiled if device.connection == PRE_COMPILE else _kept_or_lowered
    program, cache = lowered(library, call, parsed, device)
    answer = program.answer
    answer.node.name = parsed.name
    if program.needs_engine:
        profiling = device.options.profiling
        answer.compilation.CopyFrom(
            compilation.describe(parsed, program.launches, answer.variable_chips, profiling, cache)
        )
        profiles.add_to(answer.compilation, program.run_log)
    return cast(bytes, answer.SerializeToString())


def _kept_or_lowered(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """A program from the executable cache, or lowered and kept there; and which of the two, if there is a cache."""
    # Errors of programs whose ops are checked one by one name the script's lines.
    directory = None if device.float_checks else executable_cache.current()
    if directory is None:
        program = _lowered(library, call, request, device)
        _keep(request, device, program.plan)
        return program, ""
    key = cached_programs.key_of(library, request, device)
    content = directory.read(key.text)
    program_kept = None if content is None else cached_programs.read(key, content)
    if program_kept is not None:
        log.info(f"Executable cache: hit, program {request.name} is loaded from {directory.file_of(key.text)}")
        if profiles.wanted(device) is not None:
            log.info(f"No profile of {request.name} is written: it was not compiled in this process")
        _keep(request, device, program_kept.plan, "hit")
        return program_kept, "hit"
    program = _lowered(library, call, request, device)
    if not program.needs_engine:  # there is nothing that Graphcore would have compiled
        _keep(request, device, program.plan)
        return program, ""
    _keep(request, device, program.plan, "miss")
    path = directory.write(key.text, cached_programs.written(key, program))
    kept = f"is kept in {path}" if path is not None else "cannot be kept"
    log.info(f"Executable cache: miss, program {request.name} was compiled and {kept}")
    # Under the names that a process gives it which finds it: what TensorFlow keeps by name is then the same.
    return cached_programs.named(program, key.functions, key.feeds, key), "miss"


def _lowered(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> Program:
    by_xla, runs, plan, run_log = _runs_as(library, call, request, device)
    return Program(answer_of(runs), by_xla.programs, needs_engine(request, by_xla), plan, run_log)


def _pre_compiled(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """A program that is not run here; a process that runs it finds it in the executable cache."""
    by_xla, runs, plan, _ = _runs_as(library, call, request, device)
    program, cache = Program(answer_of(runs), by_xla.programs, needs_engine(request, by_xla), plan), ""
    directory = None if device.float_checks or not program.needs_engine else executable_cache.current()
    if directory is not None:
        key = cached_programs.key_of(library, request, device)
        cache = "miss" if directory.read(key.text) is None else "hit"
        path = directory.write(key.text, cached_programs.written(key, program)) if cache == "miss" else None
        if path is not None:
            log.info(f"A pre-compiled Poplar program has been saved to {path}")
    _keep(request, device, plan, cache)
    _add_zeros(program.answer, by_xla)
    return program, cache


def _keep(request: ProgramRequest, device: IpuDevice, plan: MemoryPlan | None, cache: str = "") -> None:
    """Keeps a program's memory for the report; refuses the program where it does not fit."""
    if plan is not None and memory_plan.enabled():
        named = dataclasses.replace(plan, program=request.name, device=device.name, cache=cache)
        memory_plan.keep(request, device, named)


def _runs_as(
    library: Library, call: Call, request: ProgramRequest, device: IpuDevice
) -> tuple[LoweredProgram, LoweredProgram, MemoryPlan | None, RunLog]:
    """A program as XLA launches, what runs (that, or the same by kernels), its memory, and where runs are logged."""
    asked, diagnostics = execution_of(device), Diagnostics(call)
    # Where nothing runs, the plan tells the shapes of results.
    settings = profiles.wanted(device)
    plans = memory_plan.enabled() or asked.way != XLA or device.connection == PRE_COMPILE or settings is not None
    group_size = device.options.experimental_distributed_batch_norm_replica_group_size

    def lowered(chunks: bool) -> LoweredProgram:
        return lower(library, call, request, device.num_ipus, plans, device.selection_order, chunks, group_size)

    program = lowered(chunks=asked.way != KERNELS)  # kernels gain nothing from chunks
    if not plans:
        return program, program, None, RunLog()
    planned = program
    names = ComputeSetNames() if settings is not None else None
    plan, work, details = memory_plan.plan_memory(request, program, device, diagnostics.user_line, names)
    unknown = dict(plan.coarse) if plan is not None else {program.node.name: "its memory could not be counted"}
    execution = choose(work) if asked.way == AUTO else asked
    runs = program
    if execution.way == KERNELS:
        alone = lowered(chunks=False) if program.has_chunks else program
        alone.result_shapes = program.result_shapes
        describe = diagnostics.describe if execution.is_checked else None
        runs = by_kernels(alone, request.library, describe, refuses=asked.way == KERNELS)
        execution = settled(execution, library, runs, unknown)
        if execution.way == KERNELS:
            program = alone
        else:
            runs = program if asked.way == AUTO else lowered(chunks=True)
            runs.result_shapes = program.result_shapes
            program = runs
    if plan is not None:
        plan = dataclasses.replace(plan, way=execution.way, way_reason=execution.reason)
    return program, runs, plan, profiles.written(settings, request, planned, device, plan, details)


def _add_zeros(answer: Any, program: LoweredProgram) -> None:
    """Says what a program that is compiled and not run gives: of which shapes, and how often to which outfeed."""
    for feed, rows in program.sent.items():
        answer.sent.add(feed_id=feed, rows=rows, replicas=program.replicas)
    for sizes in program.result_shapes:
        shape = answer.result_shapes.add(unknown_rank=sizes is None)
        for size in sizes or ():
            shape.dim.add(size=size)


def parse_request(request: bytes) -> ProgramRequest:
    """Reads what the plugin sends.

    Args:
        request: a serialised `program_pb2.ProgramRequest`.

    Raises:
        PluginError: it is none, or names a function that it does not bring.
    """
    return _parsed(_read(request))


def _read(request: bytes) -> Any:
    try:
        return program_pb2.ProgramRequest.FromString(request)
    except protobuf.DecodeError as error:
        raise errors.PluginError(f"The plugin sent {len(request)} bytes, no ProgramRequest: {error}.") from error


def _parsed(message: Any) -> ProgramRequest:
    library = legacy_calls.as_calls({function.signature.name: function for function in message.library.function})
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
