"""Decides from the Poplar engine options whether programs are profiled, and the directory of profiles."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping

from tf_ipu_shim.machine.environment import engine_options

DIRECTORY_VARIABLE = "TF_IPU_SHIM_PROFILE_DIR"
"""A second directory for whole profiles, independent of engine options: `tf-ipu run --profile` sets it."""
DEFAULT_RUNS = 2
"""Runs of a program that are written down unless the options say otherwise, as Poplar does."""


@dataclasses.dataclass(frozen=True)
class ReportSettings:
    """The requested reports.

    Args:
        directory: the parent of each program's folder.
        graph: whether the components of the program are written.
        runs: the highest number of runs that are written.
    """

    directory: pathlib.Path
    graph: bool
    execution: bool
    runs: int


def is_requested(options: Mapping[str, str]) -> bool:
    """Returns whether engine options or `--profile` request a report."""
    return any(_parse_requested(options)) or bool(os.environ.get(DIRECTORY_VARIABLE))


def all_settings(options: Mapping[str, str]) -> tuple[ReportSettings, ...]:
    """Returns the requested reports: from outside, then from engine options, unless both name the same directory.

    A script that reads its own profiles finds them in its own directory, also when it is run for a profile.

    Example:
        >>> all_settings({"autoReport.all": "true"})[-1].directory
        PosixPath('.')
    """
    script_settings, directory = parse_settings(options), os.environ.get(DIRECTORY_VARIABLE)
    if not directory:
        return (script_settings,) if script_settings else ()
    outside = ReportSettings(pathlib.Path(directory), graph=True, execution=True, runs=_parse_run_limit(options))
    if script_settings is None or script_settings.directory.resolve() == outside.directory.resolve():
        return (outside,)
    return (outside, script_settings)


def parse_settings(options: Mapping[str, str]) -> ReportSettings | None:
    """Returns the settings in some engine options; None if no report is requested.

    Example:
        >>> parse_settings({"autoReport.all": "true", "autoReport.outputExecutionProfile": "false"}).execution
        False
        >>> parse_settings({}) is None
        True
    """
    graph, execution = _parse_requested(options)
    if not graph and not execution:
        return None
    directory = pathlib.Path(options.get(engine_options.REPORT_DIRECTORY) or ".")
    return ReportSettings(directory, graph, execution, _parse_run_limit(options))


def _parse_run_limit(options: Mapping[str, str]) -> int:
    setting = options.get(engine_options.REPORT_RUNS, str(DEFAULT_RUNS))
    if not setting.isascii() or not setting.isdigit():
        raise ValueError(
            f"{engine_options.REPORT_RUNS} is {setting!r}; it must be a number of runs, such as '10'. Set it to a "
            "whole number."
        )
    return int(setting)


def _parse_requested(options: Mapping[str, str]) -> tuple[bool, bool]:
    """Returns whether a graph profile is requested, and whether an execution profile is."""
    everything = engine_options.is_enabled(options, engine_options.REPORT_ALL)

    def is_set(name: str) -> bool:
        return engine_options.is_enabled(options, name) if name in options else everything

    return is_set(engine_options.REPORT_GRAPH), is_set(engine_options.REPORT_EXECUTION)
