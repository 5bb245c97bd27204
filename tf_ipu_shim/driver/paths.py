"""The ways from a job to a program: lowered, cached, compiled in advance, written to a file as an application."""

from __future__ import annotations

import dataclasses
from typing import Any

from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.driver import applications, cached_programs, serialized
from tf_ipu_shim.driver.cached_programs import Program
from tf_ipu_shim.driver.compilation import EventDetails
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.driver.planned_program import PreparedProgram, lower_for_device
from tf_ipu_shim.driver.profiles import RunLog, requested_settings
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.executable_cache import CacheDirectory


def write_application(job: Job, application: Any) -> str:
    """Writes an application to a file; returns its path. The engine that loads it lowers it again."""
    lowered = lower_for_device(job, runs=False)
    _store_plan(job, lowered.plan)
    return applications.write(job.library, job.request, application, lowered.counted, job.device)


def pre_compile(job: Job, directory: CacheDirectory | None) -> tuple[Program, str]:
    """Lowers a program that only another process runs, through the executable cache."""
    cache, key = "", None
    if directory is not None:
        key = cached_programs.key_of(job.library, job.request, job.device)
        cache = "miss" if directory.read(key.text) is None else "hit"
    # Lowered also where it is kept: only that tells the shapes of its results.
    lowered = lower_for_device(job, cache != "hit", cache == "miss" or serialized.is_requested(job.device))
    program = dataclasses.replace(_program_of(job, lowered), run_log=RunLog(), details=EventDetails())  # of runs
    if not program.needs_engine:
        cache = ""
    if directory is not None and key is not None and cache == "miss":
        path = directory.write(key.text, cached_programs.serialize(key, program))
        if path is not None:
            log.info(f"A pre-compiled Poplar program has been saved to {path}")
    _store_plan(job, program.plan, cache)
    _add_result_shapes(program.answer, lowered.by_xla)
    return program, cache


def load_or_lower(job: Job, directory: CacheDirectory) -> tuple[Program, str]:
    """Returns a program from the cache ("hit"), or lowers it and stores it ("miss")."""
    key = cached_programs.key_of(job.library, job.request, job.device)
    content = directory.read(key.text)
    cached = None if content is None else cached_programs.deserialize(key, content)
    if cached is not None:
        log.info(f"Executable cache: hit, program {job.program} is loaded from {directory.file_of(key.text)}")
        if requested_settings(job.device):
            log.info(f"No profile of {job.program} is written: it was not compiled in this process")
        _store_plan(job, cached.plan, "hit")
        return cached, "hit"
    program = _program_of(job, lower_for_device(job))
    if not program.needs_engine:  # there is nothing that Graphcore would have compiled
        _store_plan(job, program.plan)
        return program, ""
    _store_plan(job, program.plan, "miss")
    path = directory.write(key.text, cached_programs.serialize(key, program))
    fate = f"is kept in {path}" if path is not None else "cannot be kept"
    log.info(f"Executable cache: miss, program {job.program} was compiled and {fate}")
    # Under the names that a process gives it which finds it: what TensorFlow keeps by name is then the same.
    return cached_programs.with_new_names(program, key.functions, key.feeds, key), "miss"


def lower_uncached(job: Job) -> tuple[Program, str]:
    """Lowers a program without the cache."""
    runs = serialized.is_requested(job.device) or not job.device.compiles_only
    program = _program_of(job, lower_for_device(job, runs=runs))
    _store_plan(job, program.plan)
    return program, ""


def _program_of(job: Job, lowered: PreparedProgram) -> Program:
    engine, shapes = needs_engine(job.request, lowered.counted), lowered.by_xla.result_shapes
    answer = _answer_of(lowered.runs)
    return Program(answer, lowered.by_xla.programs, engine, lowered.plan, lowered.run_log, lowered.details, shapes)


def _answer_of(program: LoweredProgram) -> Any:
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


def _add_result_shapes(answer: Any, program: LoweredProgram) -> None:
    """Adds the result shapes and outfeed counts of a program that is compiled and not run."""
    for feed, rows in program.sent.items():
        answer.sent.add(feed_id=feed, rows=rows, replicas=program.replicas)
    for sizes in program.result_shapes:
        shape = answer.result_shapes.add(unknown_rank=sizes is None)
        for size in sizes or ():
            shape.dim.add(size=size)


def _store_plan(job: Job, plan: MemoryPlan | None, cache: str = "") -> None:
    """Stores a program's memory plan; refuses the program if it does not fit."""
    if plan is not None and memory_plan.enabled():
        named = dataclasses.replace(plan, program=job.program, device=job.device.name, cache=cache)
        memory_plan.store_plan(job.request, job.device, named)
