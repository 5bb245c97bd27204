"""Answers the plugin's requests to lower a program that first runs under a configuration."""

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
from tf_ipu_shim.driver.planned_program import lower_for_device
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import captured_programs, executable_cache, log
from tf_ipu_shim.runtime.device import ON_DEMAND, PRE_COMPILE, IpuDevice


def lower_bytes(library: Library, device_of: Callable[[int, bool], IpuDevice], call: Call, request: bytes) -> bytes:
    """Lowers a serialised `ProgramRequest`, plans its memory and returns a serialised `ProgramAnswer`."""
    message = _parse_message(request)
    if message.HasField("plain_ops"):
        return uncompiled_ops.profile_step(library, call, message, device_of(message.ordinal, True))
    start = time.monotonic()
    parsed = _to_request(message)
    to_file = message.HasField("application")
    device = device_of(parsed.ordinal, False)
    if not to_file and device.connection != ON_DEMAND:  # which attaches when the program, compiled, is to run
        device.attach()
    if to_file:
        made = lower_for_device(library, call, parsed, device, runs=False)  # the engine that loads it lowers it again
        _store_plan(parsed, device, made.plan)
        path = applications.write(library, parsed, message.application, made.counted, device)
        return cast(bytes, program_pb2.ProgramAnswer(application_file=path).SerializeToString())
    get = _pre_compile if device.connection == PRE_COMPILE else _load_or_lower
    program, cache = get(library, call, parsed, device)
    answer = program.answer
    answer.node.name = parsed.name
    if _writes_files(device):
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
    """Logs that a program was compiled, or lets the plugin log it if XLA is yet to compile it."""
    if not log.enabled():
        return
    line = f"Compiled program {program_name(request.function, request.name)} for {device.name}"
    nodes = itertools.chain([answer.node], *(function.node_def for function in answer.functions))
    if not device.compiles_only and any(node.op == vocabulary.LAUNCH for node in nodes):
        answer.compilation.log_line = log.text(line)
    else:
        log.info(f"{line} in {seconds:.2f} s")


def _load_or_lower(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """Returns a program from the cache ("hit"), or lowers it and stores it ("miss")."""
    directory = _cache_of(device)
    if directory is None:
        program = _lower(library, call, request, device, runs=_writes_files(device) or not device.compiles_only)
        _store_plan(request, device, program.plan)
        return program, ""
    key = cached_programs.key_of(library, request, device)
    content = directory.read(key.text)
    program_kept = None if content is None else cached_programs.deserialize(key, content)
    shown = program_name(request.function, request.name)
    if program_kept is not None:
        log.info(f"Executable cache: hit, program {shown} is loaded from {directory.file_of(key.text)}")
        if profiles.requested_settings(device):
            log.info(f"No profile of {shown} is written: it was not compiled in this process")
        _store_plan(request, device, program_kept.plan, "hit")
        return program_kept, "hit"
    program = _lower(library, call, request, device)
    if not program.needs_engine:  # there is nothing that Graphcore would have compiled
        _store_plan(request, device, program.plan)
        return program, ""
    _store_plan(request, device, program.plan, "miss")
    path = directory.write(key.text, cached_programs.serialize(key, program))
    kept = f"is kept in {path}" if path is not None else "cannot be kept"
    log.info(f"Executable cache: miss, program {shown} was compiled and {kept}")
    # Under the names that a process gives it which finds it: what TensorFlow keeps by name is then the same.
    return cached_programs.with_new_names(program, key.functions, key.feeds, key), "miss"


def _cache_of(device: IpuDevice) -> executable_cache.CacheDirectory | None:
    """Returns the cache, except for op-by-op float checks, whose errors name the script's lines."""
    return None if device.float_checks or captured_programs.active() else executable_cache.current()


def _writes_files(device: IpuDevice) -> bool:
    """Whether a configuration also asks for serialised program files."""
    return bool(device.options.serialization_folder) and not captured_programs.active()


def _lower(library: Library, call: Call, request: ProgramRequest, device: IpuDevice, runs: bool = True) -> Program:
    made = lower_for_device(library, call, request, device, runs=runs)
    engine = needs_engine(request, made.counted)
    shapes = made.by_xla.result_shapes
    return Program(answer_of(made.runs), made.by_xla.programs, engine, made.plan, made.run_log, made.details, shapes)


def _pre_compile(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> tuple[Program, str]:
    """Lowers a program that only another process runs, through the executable cache."""
    directory, cache, key = _cache_of(device), "", None
    if directory is not None:
        key = cached_programs.key_of(library, request, device)
        cache = "miss" if directory.read(key.text) is None else "hit"
    # Lowered also where it is kept: only that tells the shapes of its results.
    is_written = cache == "miss" or _writes_files(device)
    counted, by_xla, runs, plan, *_ = lower_for_device(library, call, request, device, cache != "hit", is_written)
    engine, shapes = needs_engine(request, counted), by_xla.result_shapes
    program = Program(answer_of(runs), by_xla.programs, engine, plan, result_shapes=shapes)
    if not program.needs_engine:
        cache = ""
    if directory is not None and key is not None and cache == "miss":
        path = directory.write(key.text, cached_programs.serialize(key, program))
        if path is not None:
            log.info(f"A pre-compiled Poplar program has been saved to {path}")
    _store_plan(request, device, plan, cache)
    _add_result_shapes(program.answer, by_xla)
    return program, cache


def _store_plan(request: ProgramRequest, device: IpuDevice, plan: MemoryPlan | None, cache: str = "") -> None:
    """Stores a program's memory plan; refuses the program if it does not fit."""
    if plan is not None and memory_plan.enabled():
        name = program_name(request.function, request.name)
        named = dataclasses.replace(plan, program=name, device=device.name, cache=cache)
        memory_plan.store_plan(request, device, named)


def _add_result_shapes(answer: Any, program: LoweredProgram) -> None:
    """Adds the result shapes and outfeed counts of a program that is compiled and not run."""
    for feed, rows in program.sent.items():
        answer.sent.add(feed_id=feed, rows=rows, replicas=program.replicas)
    for sizes in program.result_shapes:
        shape = answer.result_shapes.add(unknown_rank=sizes is None)
        for size in sizes or ():
            shape.dim.add(size=size)


def parse_request(request: bytes) -> ProgramRequest:
    """Parses a serialised `ProgramRequest` of the plugin."""
    return _to_request(_parse_message(request))


def _parse_message(request: bytes) -> Any:
    try:
        return program_pb2.ProgramRequest.FromString(request)
    except protobuf.DecodeError as error:
        raise errors.PluginError(f"The plugin sent {len(request)} bytes, no ProgramRequest: {error}.") from error


def _to_request(message: Any) -> ProgramRequest:
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
        ordinal=Device(message.ordinal),
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
    """Returns the `ProgramAnswer` of a program, without its compilation."""
    return program_pb2.ProgramAnswer(
        node=program.node,
        functions=program.functions,
        variable_chips=program.variable_chips,
        inputs=program.inputs,
        replica_variables=[
            program_pb2.ReplicaVariable(argument=argument, chip=chip) for argument, chip in program.replica_variables
        ],
        run_group=program.run_group,
    )
