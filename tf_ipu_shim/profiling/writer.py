"""Writes a program's profile: a SQLite file, and a summary in JSON."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import re
import sqlite3
from typing import Any, get_type_hints

from tf_ipu_shim.profiling.profile import Profile, parse_facts

FORMAT_VERSION = 2
"""Increases if a reader of an older version would misread the file."""
READ_VERSIONS = (1, FORMAT_VERSION)
"""The formats that can be read: files of format 1 lack the last column of programs."""
FILE = "profile.pop"
"""The name that scripts open; its content is SQLite, not Poplar's format."""
SUMMARY = "framework.json"
RUNS = "runs.txt"
"""The file in which the plugin writes a line for each run: its start and end in microseconds since 1970."""
PREFIX = "tf_report__"
_APPLICATION_ID = 0x49505550  # "IPUP", so that `file` tells such a file from other databases
_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT"}


def make_profile_folder(directory: pathlib.Path, program: str) -> pathlib.Path:
    """Makes a folder for a program's profile: `tf_report__<time>__<process>__<program>`.

    Source: docs/reference/facts.md, section "Profiles".

    Example:
        >>> import tempfile
        >>> make_profile_folder(pathlib.Path(tempfile.mkdtemp()), "train").name.startswith("tf_report__")
        True
    """
    time = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S-%f")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", program).strip("._")[:80] or "program"
    folder = directory / f"{PREFIX}{time}__{os.getpid()}__{name}"
    folder.mkdir(parents=True)
    return folder


def write_profile(profile: Profile, folder: pathlib.Path) -> pathlib.Path:
    """Writes a profile."""
    path, unfinished = folder / FILE, folder / f".{FILE}.unfinished"
    connection = sqlite3.connect(unfinished, isolation_level=None)
    try:
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for table, row_type in table_definitions().items():
            columns = get_type_hints(row_type)
            declared = ", ".join(f"{name} {_sql_type(kind)}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({declared})")
            placeholders = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} VALUES ({placeholders})", getattr(profile, table))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be written: {error}. Check the directory and its permissions.") from error
    finally:
        connection.close()
    (folder / SUMMARY).write_text(json.dumps(summarize(profile), indent=1) + "\n")
    os.replace(unfinished, path)
    return path


def table_definitions() -> dict[str, Any]:
    """Returns the type of the rows of each table, by its name."""
    return {name: hint.__args__[0] for name, hint in get_type_hints(Profile).items()}


def _sql_type(kind: Any) -> str:
    return _TYPES.get(kind, "TEXT")


def summarize(profile: Profile) -> dict[str, Any]:
    """Returns a program at a glance: the facts, each IPU, the longest compute sets, the largest variables."""
    facts = parse_facts(profile)
    longest = sorted(profile.compute_sets, key=lambda row: -row.cycles * row.runs)[:20]
    largest = sorted(profile.variables, key=lambda row: -row.bytes)[:20]
    return {
        "format": FORMAT_VERSION,
        **facts,
        "options": {row.name: row.value for row in profile.options},
        "by_ipu": [
            {
                "ipu": row.ipu,
                "always_live_bytes": row.always_live_bytes,
                "not_always_live_bytes": row.not_always_live_bytes,
                "largest_step": row.largest_step,
                "categories": json.loads(row.categories),
                "busy_cycles": row.busy_cycles,
            }
            for row in profile.ipus
        ],
        "longest_compute_sets": [
            {"name": row.name, "cycles": row.cycles, "runs": row.runs, "tiles": row.tiles} for row in longest
        ],
        "largest_variables": [
            {"name": row.name, "kind": row.kind, "bytes": row.bytes, "ipu": row.ipu, "line": row.line}
            for row in largest
        ],
    }
