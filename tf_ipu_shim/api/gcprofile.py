"""`gcprofile`: saves the reports that scripts of SDK 1.2 to 2.1 collect for the PopVision tools."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import tf_ipu_shim
from tf_ipu_shim.frontend.utilities import events


def save_tf_report(report: Any, log_dir: str = ".") -> None:
    """Writes the trace events that a script has read, and the memory report.

    There is no Poplar compiler here, so PopVision cannot open these files. `events.json` has the events as protobuf
    text, and `memory_report.json` has the output of `tf-ipu run --memory-json`.

    Args:
        report: trace events, as returned by `ipu_event_trace`.
        log_dir: the directory, made if it is not there.

    Source: `gcprofile.save_tf_report`.

    Example:
        >>> import tempfile, os
        >>> directory = tempfile.mkdtemp()
        >>> save_tf_report([], log_dir=directory)
        >>> sorted(os.listdir(directory))
        ['events.json', 'memory_report.json']
    """
    directory = pathlib.Path(log_dir)
    directory.mkdir(parents=True, exist_ok=True)
    messages = [str(event) for event in events.extract_all_events(report)]
    (directory / "events.json").write_text(json.dumps(messages, indent=2) + "\n")
    (directory / "memory_report.json").write_text(tf_ipu_shim.memory_report().to_json() + "\n")
