"""Reads a program's profile from its file, and the times of the runs recorded next to it."""

from __future__ import annotations

import pathlib
import sqlite3
from typing import NamedTuple

from tf_ipu_shim.profiling.profile import Profile
from tf_ipu_shim.profiling.writer import FILE, READ_VERSIONS, RUNS, table_definitions


class Run(NamedTuple):
    """A run of the program on this machine.

    Args:
        start: microseconds since 1970.
    """

    start: int
    end: int


def read_profile(path: str | pathlib.Path) -> Profile:
    """Reads a profile."""
    given = pathlib.Path(path)
    file = given / FILE if given.is_dir() else given
    if not file.is_file():
        place = f"in the directory {str(given)!r}" if given.is_dir() else repr(str(given))
        raise FileNotFoundError(
            f"There is no profile {place}; expected {FILE}, which a program writes. Run the script with "
            "`tf-ipu run --profile DIR`, or set POPLAR_ENGINE_OPTIONS to "
            '{"autoReport.all": "true"} before the IPUs are configured.'
        )
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in READ_VERSIONS:
                versions = " and ".join(map(str, READ_VERSIONS))
                raise ValueError(
                    f"{file} is a profile of format {version}; expected format {versions}. Write it again "
                    "with this version."
                )
            parts = {
                table: [row(*values) for values in connection.execute(f"SELECT * FROM {table}")]
                for table, row in table_definitions().items()
            }
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"{file} is not a profile that tf_ipu_shim wrote: {error}. Files of Poplar's own profiler are not read. "
            "Pass a profile that tf_ipu_shim wrote."
        ) from error
    return Profile(**parts)


def read_runs(path: str | pathlib.Path) -> list[Run] | None:
    """Returns the runs recorded next to a profile, oldest first; None if none were to be recorded."""
    given_path = pathlib.Path(path)
    beside = (given_path if given_path.is_dir() else given_path.parent) / RUNS
    if not beside.is_file():
        return None
    lines = (line.split() for line in beside.read_text().splitlines())
    return [Run(int(line[0]), int(line[1])) for line in lines if len(line) == 2]
