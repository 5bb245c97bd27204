"""Writes a program's profile when it is lowered, and names the file in which the plugin logs its runs."""

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
from tf_ipu_shim.memory_model.memory_plan import PlanDetails
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines
from tf_ipu_shim.profiling import collect, writer
from tf_ipu_shim.profiling.profile import PairRow, Profile, parse_facts
from tf_ipu_shim.profiling.settings import ReportSettings, all_settings
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.device import IpuDevice


class RunLog(NamedTuple):
    """The file in which the plugin logs a program's runs.

    Args:
        path: the file; empty for none.
        runs: the number of runs that are written.
    """

    path: str = ""
    runs: int = 0


def requested_settings(device: IpuDevice) -> tuple[ReportSettings, ...]:
    """Returns the profile settings of each directory that gets profiles of a device's programs."""
    return all_settings(device.engine_options)


def build(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    plan: MemoryPlan | None,
    details: PlanDetails,
) -> Profile | None:
    """Builds a program's profile if Graphcore would compile an engine for it.

    An op that XLA runs because no kernel can is not a program: the step that it is in is.
    """
    if plan is None or request.single_op or not needs_engine(request, program):
        return None
    try:
        return _profile(request, program, device, plan, details)
    except Exception as error:
        bug_report.warn(request, error, "without its cycles")
        return None


def write_profile(profile: Profile, wanted_settings: Sequence[ReportSettings]) -> RunLog:
    """Writes a program's profile; failures are logged."""
    log_of_runs = RunLog()
    for settings in wanted_settings:
        log_of_runs = _write(parse_facts(profile)["program"], settings, _reduced(profile, settings), log_of_runs)
    return log_of_runs


def _reduced(profile: Profile, settings: ReportSettings) -> Profile:
    """Returns a profile reduced to the settings of one directory."""
    facts = [*profile.facts, PairRow("execution", json.dumps(settings.execution))]
    profile = profile._replace(facts=facts)
    return profile if settings.graph else profile._replace(variables=[], liveness=[])


def _write(name: str, settings: ReportSettings, profile: Profile, log_of_runs: RunLog) -> RunLog:
    """Writes a profile into a new folder; runs go to the first such folder."""
    wants_runs = settings.execution and settings.runs > 0
    folder: pathlib.Path | None = None
    try:
        folder = writer.make_profile_folder(settings.directory, name)
        path = writer.write_profile(profile, folder)
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
    details: PlanDetails,
) -> Profile:
    name = program_name(request.function, request.name)
    timeline = timeline_of(details.blocks, device.chip, device.num_ipus, replicas=program.replicas)
    return collect.make_profile(
        dataclasses.replace(plan, program=name, device=device.name),
        details.blocks,
        timeline,
        device.chip,
        device.num_ipus,
        program.replicas,
        _memoized(details.line_of),
        device.engine_options,
        {
            "sdk": str(sdk.current()),
            "op": request.name,
            "function": request.function,
            "is_model": device.on_model,
            "execution_mode": plan.mode,
            "stages": _stages(request, program, len(plan.ipus)),
        },
    )


def _stages(request: ProgramRequest, program: LoweredProgram, ipus: int) -> list[list[int]]:
    """Returns the forward pipeline stages on each IPU of the first replica, except stages on all IPUs.

    So are idle stages, on IPUs without a plan.
    """
    ipu_stages: list[set[int]] = [set() for _ in range(ipus)]
    for pipeline in find_pipelines(request.library.values()):
        for stage, shards in enumerate(pipeline.devices):
            for ipu in (program.shard_chips[shard] for shard in shards if shard >= 0):
                if ipu < ipus:
                    ipu_stages[ipu].add(stage)
    return [sorted(stages) for stages in ipu_stages]


def _memoized(line_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    lines: dict[str, str | None] = {}

    def line(name: str) -> str | None:
        if name not in lines:
            lines[name] = line_of(name)
        return lines[name]

    return line


def add_to(compilation: Any, run_log: RunLog) -> None:
    """Sets the plugin's log of runs."""
    compilation.run_log, compilation.logged_runs = run_log.path.encode(), run_log.runs
