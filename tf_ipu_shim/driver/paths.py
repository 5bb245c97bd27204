"""Obtains the program that a request asks for: from the cache, lowered, compiled in advance, or as a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.driver import answers, applications, cached_programs, dumps, event_reports, serialized
from tf_ipu_shim.driver.answers import Program
from tf_ipu_shim.driver.compilation import EventDetails
from tf_ipu_shim.driver.planned_program import lower_for_device
from tf_ipu_shim.driver.profiles import RunLog
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.memory_model.walk import user_op_builds
from tf_ipu_shim.profiling import settings
from tf_ipu_shim.runtime import captured_programs, devices, log
from tf_ipu_shim.runtime.executable_cache import CacheDirectory


def write_application(job: Job, application: Any) -> str:
    """Writes an application to a file; returns its path. The engine that loads it lowers it again."""
    lowered = lower_for_device(job, runs=False)
    memory_plan.store_plan(job.request, job.device, lowered.plan)
    return applications.write_application_file(job.library, job.request, application, lowered.counted, job.device)


def pre_compile(job: Job, directory: CacheDirectory | None) -> tuple[Program, str]:
    """Lowers a program that only another process runs, through the executable cache."""
    cache, key = "", None
    if directory is not None:
        key = cached_programs.key_of(job.library, job.request, job.device)
        cache = "miss" if directory.read(key.text) is None else "hit"
    # Lowered also where it is kept: only that tells the shapes of its results.
    lowered = lower_for_device(job, cache != "hit", cache == "miss" or serialized.is_requested(job.device))
    program = answers.make_program(job.request, lowered)
    program = dataclasses.replace(program, run_log=RunLog(), details=EventDetails())  # of runs
    if not program.needs_engine:
        cache = ""
    if directory is not None and key is not None and cache == "miss":
        path = directory.write(key.text, cached_programs.serialize(key, program))
        if path is not None:
            log.info(f"A pre-compiled Poplar program has been saved to {path}")
    memory_plan.store_plan(job.request, job.device, program.plan, cache)
    answers.add_result_shapes(program.answer, lowered.by_xla)
    return program, cache


def load_or_lower(job: Job, directory: CacheDirectory) -> tuple[Program, str]:
    """Returns a program from the cache ("hit"), or lowers it and stores it ("miss")."""
    key = cached_programs.key_of(job.library, job.request, job.device)
    content = directory.read(key.text)
    cached = None if content is None else cached_programs.deserialize(key, content)
    if cached is not None:
        log.info(f"Executable cache: hit, program {job.program} is loaded from {directory.file_of(key.text)}")
        if settings.is_requested(job.device.engine_options):
            log.info(f"No profile of {job.program} is written: it was not compiled in this process")
        user_op_builds.build_again(cached.user_op_calls, job.request, Diagnostics(job.call).describe)
        memory_plan.store_plan(job.request, job.device, cached.plan, "hit")
        return cached, "hit"
    lowered = lower_for_device(job)
    program = answers.make_program(job.request, lowered)
    cache = "miss" if program.needs_engine else ""  # else there is nothing that Graphcore would have compiled
    memory_plan.store_plan(job.request, job.device, program.plan, cache)
    if not cache:
        return program, cache
    path = directory.write(key.text, cached_programs.serialize(key, program))
    fate = f"is kept in {path}" if path is not None else "cannot be kept"
    log.info(f"Executable cache: miss, program {job.program} was compiled and {fate}")
    # Under the names that a process gives it which finds it: what TensorFlow keeps by name is then the same.
    return cached_programs.with_new_names(program, key.functions, key.feeds, key), cache


def lower_uncached(job: Job) -> tuple[Program, str]:
    """Lowers a program without the cache."""
    runs = serialized.is_requested(job.device) or not job.device.compiles_only
    with _compilation(job) as compiles:
        lowered = lower_for_device(job, compiles, runs)
    program = answers.make_program(job.request, lowered)
    memory_plan.store_plan(job.request, job.device, program.plan)
    return program, ""


@contextmanager
def _compilation(job: Job) -> Iterator[bool]:
    """Yields whether Graphcore would compile a program: a configured device compiles equal programs once.

    Programs are compared only if a compilation writes something.
    """
    device = job.device
    is_recorded = (
        settings.is_requested(device.engine_options)
        or event_reports.is_requested(device.options.profiling)
        or dumps.is_requested()
    )
    if not is_recorded or captured_programs.active():
        yield True
        return
    key = cached_programs.key_of(job.library, job.request, device).text
    is_new = device.note_compilation(key) or devices.expects_recompilation()
    if not is_new:
        log.info(f"No profile of {job.program} is written: {device.name} has compiled the same program before")
    try:
        yield is_new
    except BaseException:
        if is_new:
            device.forget_compilation(key)
        raise
