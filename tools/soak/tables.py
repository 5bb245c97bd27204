"""Figures of a run of the soak as rows of `validation/soak.csv`."""

from __future__ import annotations

import csv
import datetime
import pathlib
from collections.abc import Mapping
from importlib import metadata

from soak.parts import Found

COLUMNS = ("kind", "runs", "wrong", "refused", "command", "tensorflow", "date")


def append(path: pathlib.Path, found: Mapping[str, Found], command: str) -> None:
    """Adds a row for each part, and the header if there is none.

    Args:
        path: the file.
        found: what was found by part.
        command: the command that was run.
    """
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    version, today = metadata.version("tensorflow-cpu"), datetime.date.today().isoformat()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS] if is_new else [])
        for name, part in found.items():
            writer.writerow([name, part.count, len(part.wrong), part.refused, command, version, today])
