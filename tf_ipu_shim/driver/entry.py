"""What the plugin calls when a program runs for the first time under a configuration."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable
from typing import Any, cast

from google.protobuf import message as protobuf

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.checks.diagnostics import program_name
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.passes import legacy_calls
from tf_ipu_shim.driver import applications, cached_programs, compilation, profiles, serialized, uncompiled_ops
from tf_ipu_shim.driver.cached_programs import Program
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.driver.planned_program import lowered
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import captured_programs, executable_cache, log
from tf_ipu_shim.runtime.device import ON_DEMAND, PRE_COMPILE, IpuDevice


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
    if message.HasField("plain_ops"):
        return uncompiled_ops.profiled(library, call, message, device_of(message.ordinal, True))
    start = time.monotonic()
    parsed = _parsed(message)
    to_file = message.HasField("application")
    device = device_of(parsed.ordinal, False)
    if not to_file and device.connection != ON_DEMAND:  # which attaches when the program, compiled, is to run
        device.attach()
    if to_file:
        made = lowered(library, call, parsed, device, runs=False)  # the engine that loads it lowers it anew
        _keep(parsed, device, made.plan)
        path = applications.write(library, parsed, message.application, made.counted, device)
        return cast(bytes, program_pb2.ProgramAnswer(application_file=path).SerializeToString())
    get = _pre_compiled if device.connection == PRE_COMPILE else _kept_or_lowered
    program, cache = get(library, call, parsed, device)
    answer = program.answer
    answer.node.name = parsed.name
    if _is_kept(device):
        serialized.write(library, parsed, device, program)
    if program.needs_engine:
        profiling = device.options.profiling
        answer.compilation.CopyFrom(
            compilation.describe(parsed, program.launches, answer.variable_chips, profiling, cache, program.details)
        )
        profiles.add_to(answer.compilation, program.run_log)
        if cache != "hit":
            _log(parsed, device, answer, time.monotonic() - start)
    return cast(bytes, answer.SerializeToString())


def _log(request: ProgramRequest, device: IpuDevice, answer: Any, seconds: float) -> None:
    """Says that a program was compiled, and how long it took; where XLA is to compile it, has the plugin say so."""
    if not log.enabled():
        return
    line = f"Compiled program {program_name(request.function, request.name)} for {device.name}"
    nodes = itertools.chain([answer.node], *(function.node_def for function in answer.functions))
    if not device.compiles_only and any(node.op == vocabulary.LAUNCH for node in nodes):
        answer.compilation.log_line = log.text(line)
    else:
        log.info(f"{line} in {seconds:.2f} s")


def _kept_or_lowered(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """A program from the executable cache, or lowered and kept there; and which of the two, if there is a cache."""
    directory = _cache_of(device)
    if directory is None:
        program = _lowered(library, call, request, device, runs=_is_kept(device) or not device.compiles_only)
        _keep(request, device, program.plan)
        return program, ""
    key = cached_programs.key_of(library, request, device)
    content = directory.read(key.text)
    program_kept = None if content is None else cached_programs.read(key, content)
    shown = program_name(request.function, request.name)
    if program_kept is not None:
        log.info(f"Executable cache: hit, program {shown} is loaded from {directory.file_of(key.text)}")
        if profiles.wanted(device):
            log.info(f"No profile of {shown} is written: it was not compiled in this process")
        _keep(request, device, program_kept.plan, "hit")
        return program_kept, "hit"
    program = _lowered(library, call, request, device)
    if not program.needs_engine:  # there is nothing that Graphcore would have compiled
        _keep(request, device, program.plan)
        return program, ""
    _keep(request, device, program.plan, "miss")
    path = directory.write(key.text, cached_programs.written(key, program))
    kept = f"is kept in {path}" if path is not None else "cannot be kept"
    log.info(f"Executable cache: miss, program {shown} was compiled and {kept}")
    # Under the names that a process gives it which finds it: what TensorFlow keeps by name is then the same.
    return cached_programs.named(program, key.functions, key.feeds, key), "miss"


def _cache_of(device: IpuDevice) -> executable_cache.Directory | None:
    """Where programs are kept. Not those whose ops are checked one by one: their errors name the script's lines."""
    return None if device.float_checks or captured_programs.active() else executable_cache.current()


def _is_kept(device: IpuDevice) -> bool:
    """Whether a configuration asks for files of programs besides."""
    return bool(device.options.serialization_folder) and not captured_programs.active()


def _lowered(library: Library, call: Call, request: ProgramRequest, device: IpuDevice, runs: bool = True) -> Program:
    made = lowered(library, call, request, device, runs=runs)
    engine = needs_engine(request, made.counted)
    shapes = made.by_xla.result_shapes
    return Program(answer_of(made.runs), made.by_xla.programs, engine, made.plan, made.run_log, made.details, shapes)


def _pre_compiled(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """A program that is not run here; a process that runs it finds it in the executable cache."""
    directory, cache, key = _cache_of(device), "", None
    if directory is not None:
        key = cached_programs.key_of(library, request, device)
        cache = "miss" if directory.read(key.text) is None else "hit"
    # Lowered also where it is kept: only that tells the shapes of its results.
    is_written = cache == "miss" or _is_kept(device)
    counted, by_xla, runs, plan, *_ = lowered(library, call, request, device, cache != "hit", is_written)
    engine, shapes = needs_engine(request, counted), by_xla.result_shapes
    program = Program(answer_of(runs), by_xla.programs, engine, plan, result_shapes=shapes)
    if not program.needs_engine:
        cache = ""
    if directory is not None and key is not None and cache == "miss":
        path = directory.write(key.text, cached_programs.written(key, program))
        if path is not None:
            log.info(f"A pre-compiled Poplar program has been saved to {path}")
    _keep(request, device, plan, cache)
    _add_zeros(program.answer, by_xla)
    return program, cache


def _keep(request: ProgramRequest, device: IpuDevice, plan: MemoryPlan | None, cache: str = "") -> None:
    """Keeps a program's memory for the report; refuses the program where it does not fit."""
    if plan is not None and memory_plan.enabled():
        name = program_name(request.function, request.name)
        named = dataclasses.replace(plan, program=name, device=device.name, cache=cache)
        memory_plan.store_plan(request, device, named)


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
    library = legacy_calls.convert_legacy_calls(
        {function.signature.name: function for function in message.library.function}
    )
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
        single_op=message.single_op,
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
