"""The reports that trace events have of a program, where the options of SDKs up to 2.3 ask for them."""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

from tf_ipu_shim.profiling import event_reports, writer
from tf_ipu_shim.profiling.profile import Profile, facts_of
from tf_ipu_shim.runtime import log

GRAPH, EXECUTION = "graph.json", "execution.json"
"""Names of the files, where there is a directory for them."""


class Texts(NamedTuple):
    """Reports of a program: JSON, or the path of a file of it; empty for none.

    Args:
        graph: what it consists of.
        execution: how long a run takes.
    """

    graph: str = ""
    execution: str = ""


def wanted(profiling: Any) -> bool:
    """Whether events have reports at all.

    Args:
        profiling: the `IpuOptions.Profiling` in force. Its `max_report_size` is 0 where no script asks for reports.
    """
    return bool(profiling.enable_ipu_trace_events and profiling.enable_compilation_trace and profiling.max_report_size)


def texts_of(profile: Profile, profiling: Any) -> Texts:
    """The reports of a program, as events have them.

    Args:
        profile: of the program.
        profiling: the `IpuOptions.Profiling` in force: whether a run has one, the bytes that each may have, and the
            directory where they are written, so that events have their paths.
    """
    reports = {GRAPH: event_reports.graph_report(profile)}
    if profiling.execution_trace_type:
        reports[EXECUTION] = event_reports.execution_report(profile)
    texts = {name: _short(name, json.dumps(report), profiling.max_report_size) for name, report in reports.items()}
    if profiling.report_directory:
        texts = _in_files(texts, pathlib.Path(profiling.report_directory), facts_of(profile)["program"])
    return Texts(*texts.values())


def _short(name: str, text: str, largest: int) -> str:
    if len(text) <= largest:
        return text
    log.warning(f"{name} has {len(text):,} bytes and is left out of trace events: max_report_size is {largest:,}.")
    return ""


def _in_files(texts: dict[str, str], directory: pathlib.Path, program: str) -> dict[str, str]:
    """Writes reports into a folder of their own; gives their paths, and the texts where they cannot be written."""
    try:
        folder = writer.make_folder(directory, program)
        for name, text in texts.items():
            (folder / name).write_text(text)
    except OSError as error:
        log.warning(f"The reports of {program} cannot be written, and are in its trace events: {error}")
        return texts
    return {name: str(folder / name) for name in texts}
