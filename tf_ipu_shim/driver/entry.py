"""Answers the plugin's requests: lowers a program at its first run, or profiles ops that ran outside programs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, cast

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.driver import compilation, paths, profiles, program_requests, serialized, uncompiled_ops
from tf_ipu_shim.driver.answers import Program
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.memory_model.walk import user_op_builds
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import captured_programs, executable_cache, log
from tf_ipu_shim.runtime.device import ON_DEMAND, PRE_COMPILE, IpuDevice


def lower_bytes(library: Library, device_of: Callable[[int, bool], IpuDevice], call: Call, request: bytes) -> bytes:
    """Answers a serialised `ProgramRequest` with a serialised `ProgramAnswer`, by the path that it needs."""
    message = program_requests.parse_message(request)
    if message.HasField("plain_ops"):
        return uncompiled_ops.profile_step(library, call, message, device_of(message.ordinal, True))
    start = time.monotonic()
    parsed = program_requests.parse_call(message)
    device = device_of(parsed.ordinal, False)
    job = Job(library, call, parsed, device)
    if message.HasField("application"):
        path = paths.write_application(job, message.application)
        return cast(bytes, program_pb2.ProgramAnswer(application_file=path).SerializeToString())
    if device.connection != ON_DEMAND:  # which attaches when the program, compiled, is to run
        device.attach()
    directory = _cache_of(job)
    if device.connection == PRE_COMPILE:
        user_op_builds.check_pre_compilation(parsed)
        program, cache = paths.pre_compile(job, directory)
    elif directory is not None:
        program, cache = paths.load_or_lower(job, directory)
    else:
        program, cache = paths.lower_uncached(job)
    return _describe_compilation(job, program, cache, start)


def _cache_of(job: Job) -> executable_cache.CacheDirectory | None:
    """Returns the cache, except for op-by-op float checks, whose errors name the script's lines, and unhashable ops."""
    if job.device.float_checks or captured_programs.active() or user_op_builds.unhashable_op(job.request):
        return None
    return executable_cache.current()


def _describe_compilation(job: Job, program: Program, cache: str, start: float) -> bytes:
    """Adds the report of the compilation to the answer; writes the requested files."""
    answer, device = program.answer, job.device
    answer.node.name = job.request.name
    if serialized.is_requested(device):
        serialized.write_serialized(job.library, job.request, device, program)
    if program.needs_engine:
        profiling = device.options.profiling
        answer.compilation.CopyFrom(
            compilation.describe(
                job.request, program.launches, answer.variable_chips, profiling, cache, program.details
            )
        )
        profiles.add_to(answer.compilation, program.run_log)
        if cache != "hit":
            _log(job, answer, time.monotonic() - start)
    return cast(bytes, answer.SerializeToString())


def _log(job: Job, answer: Any, seconds: float) -> None:
    """Logs that a program was compiled, or lets the plugin log it if XLA is yet to compile it."""
    if not log.enabled():
        return
    line = f"Compiled program {job.program} for {job.device.name}"
    nodes = itertools.chain([answer.node], *(function.node_def for function in answer.functions))
    if not job.device.compiles_only and any(node.op == vocabulary.LAUNCH for node in nodes):
        answer.compilation.log_line = log.text(line)
    else:
        log.info(f"{line} in {seconds:.2f} s")
