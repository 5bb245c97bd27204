"""Writes the graph and execution reports of trace events, which options of SDKs up to 2.3 request."""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

from tf_ipu_shim.profiling import event_reports, writer
from tf_ipu_shim.profiling.profile import Profile, parse_facts
from tf_ipu_shim.runtime import log

GRAPH, EXECUTION = "graph.json", "execution.json"
"""Names of the files, if there is a directory for them."""


class EventReports(NamedTuple):
    """Reports of a program: JSON or file paths; empty if not wanted.

    Args:
        execution: how long a run takes.
    """

    graph: str = ""
    execution: str = ""


def is_requested(profiling: Any) -> bool:
    """Returns whether trace events contain reports."""
    return bool(profiling.enable_ipu_trace_events and profiling.enable_compilation_trace and profiling.max_report_size)


def reports_of(profile: Profile, profiling: Any) -> EventReports:
    """Returns a program's reports as trace events contain them."""
    reports = {GRAPH: event_reports.make_graph_report(profile)}
    if profiling.execution_trace_type:
        reports[EXECUTION] = event_reports.make_execution_report(profile)
    report_texts = {
        name: _short(name, json.dumps(report), profiling.max_report_size) for name, report in reports.items()
    }
    if profiling.report_directory:
        report_texts = _in_files(
            report_texts, pathlib.Path(profiling.report_directory), parse_facts(profile)["program"]
        )
    return EventReports(*report_texts.values())


def _short(name: str, report: str, largest: int) -> str:
    if len(report) <= largest:
        return report
    log.warning(f"{name} has {len(report):,} bytes and is left out of trace events: max_report_size is {largest:,}.")
    return ""


def _in_files(reports: dict[str, str], directory: pathlib.Path, program: str) -> dict[str, str]:
    """Writes reports into a new folder; returns paths, or the strings if they cannot be written."""
    try:
        folder = writer.make_profile_folder(directory, program)
        for name, report in reports.items():
            (folder / name).write_text(report)
    except OSError as error:
        log.warning(f"The reports of {program} cannot be written, and are in its trace events: {error}")
        return reports
    return {name: str(folder / name) for name in reports}
