"""Has a program's profile written, where that is asked for: when it is lowered, and a line for each of its runs."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim import sdk
from tf_ipu_shim.compiler.checks.diagnostics import program_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.cycle_model import timeline_of
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import bug_report
from tf_ipu_shim.memory_model.memory_plan import Details
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines
from tf_ipu_shim.profiling import collect, writer
from tf_ipu_shim.profiling.profile import PairRow, Profile, facts_of
from tf_ipu_shim.profiling.settings import ReportSettings, all_settings
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.device import IpuDevice


class RunLog(NamedTuple):
    """Where the plugin writes down a program's runs.

    Args:
        path: the file; empty for none.
        runs: how many of them.
    """

    path: str = ""
    runs: int = 0


def wanted(device: IpuDevice) -> tuple[ReportSettings, ...]:
    """What is asked for of the programs of a device, in each directory that is to have it."""
    return all_settings(device.engine_options)


def made(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    plan: MemoryPlan | None,
    details: Details,
) -> Profile | None:
    """Makes a program's profile, where Graphcore would compile an engine for the program.

    An op that XLA runs because no kernel can is no program: the step that it is in is.

    Args:
        request: the traced function.
        program: what it runs as.
        device: where it runs.
        plan: its memory; None where there is no plan.
        details: what it was made of.

    Returns:
        The profile; None where there is none. A program whose profile fails runs all the same: a bug of ours is a
        warning.
    """
    if plan is None or request.single_op or not needs_engine(request, program):
        return None
    try:
        return _profile(request, program, device, plan, details)
    except Exception as error:
        bug_report.warn(request, error, "without its cycles")
        return None


def written(profile: Profile, wanted_settings: Sequence[ReportSettings]) -> RunLog:
    """Writes a program's profile. What cannot be written is a line in the log.

    Args:
        profile: of the program.
        wanted_settings: what is asked for.

    Returns:
        Where its runs are to be written down.
    """
    log_of_runs = RunLog()
    for settings in wanted_settings:
        log_of_runs = _write(facts_of(profile)["program"], settings, _as_wanted(profile, settings), log_of_runs)
    return log_of_runs


def _as_wanted(profile: Profile, settings: ReportSettings) -> Profile:
    """A profile with what one directory is to have of it."""
    facts = [*profile.facts, PairRow("execution", json.dumps(settings.execution))]
    profile = profile._replace(facts=facts)
    return profile if settings.graph else profile._replace(variables=[], liveness=[])


def _write(name: str, settings: ReportSettings, profile: Profile, log_of_runs: RunLog) -> RunLog:
    """Writes a profile into a folder of its own, whose runs are those of the first such folder."""
    wants_runs = settings.execution and settings.runs > 0
    folder: pathlib.Path | None = None
    try:
        folder = writer.make_folder(settings.directory, name)
        path = writer.write(profile, folder)
        runs = (folder / writer.RUNS).absolute()
        if wants_runs and log_of_runs.path:
            runs.symlink_to(log_of_runs.path)  # the plugin writes one file
        elif wants_runs:
            runs.touch()
    except OSError as error:
        log.warning(f"The profile of {name} cannot be written: {error}")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return log_of_runs
    log.info(f"The profile of {name} is written to {path}")
    return RunLog(str(runs), settings.runs) if wants_runs and not log_of_runs.path else log_of_runs


def _profile(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    plan: MemoryPlan,
    details: Details,
) -> Profile:
    name = program_name(request.function, request.name)
    timeline = timeline_of(details.blocks, device.chip, device.num_ipus, replicas=program.replicas)
    return collect.profile_of(
        dataclasses.replace(plan, program=name, device=device.name),
        details.blocks,
        timeline,
        device.chip,
        device.num_ipus,
        program.replicas,
        _remembered(details.line_of),
        device.engine_options,
        {
            "sdk": str(sdk.current()),
            "op": request.name,
            "function": request.function,
            "is_model": device.on_model,
            "way": plan.way,
            "stages": _stages(request, program, len(plan.ipus)),
        },
    )


def _stages(request: ProgramRequest, program: LoweredProgram, ipus: int) -> list[list[int]]:
    """The forward stages of its pipelines that each IPU of the first replica has; those on all IPUs are left out.

    So are stages that have nothing to do, on IPUs that are in no plan.
    """
    found: list[set[int]] = [set() for _ in range(ipus)]
    for pipeline in find_pipelines(request.library.values()):
        for stage, shards in enumerate(pipeline.devices):
            for ipu in (program.shard_ipus[shard] for shard in shards if shard >= 0):
                if ipu < ipus:
                    found[ipu].add(stage)
    return [sorted(stages) for stages in found]


def _remembered(line_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    lines: dict[str, str | None] = {}

    def line(name: str) -> str | None:
        if name not in lines:
            lines[name] = line_of(name)
        return lines[name]

    return line


def add_to(compilation: Any, run_log: RunLog) -> None:
    """Tells the plugin where to write runs down.

    Args:
        compilation: a `program_pb2.Compilation`.
        run_log: where.
    """
    compilation.run_log, compilation.logged_runs = run_log.path.encode(), run_log.runs
