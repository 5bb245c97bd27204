"""Reads the tables of the options that functions of Poplar and PopLibs accept."""

from __future__ import annotations

import dataclasses
import functools

from tf_ipu_shim import data_files
from tf_ipu_shim.machine.environment import engine_options

KINDS = ("Integer", "Decimal", "Fraction", "Text")
"""Words for any value of that kind."""
_ENGINE = "engine_options"


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a table; `without_effect` says why it has no effect, and is empty if it has one."""

    name: str
    values: tuple[str, ...]
    without_effect: str


@dataclasses.dataclass(frozen=True)
class OptionTable:
    """The options that some functions accept.

    Args:
        header: the C++ header that is generated from the table.
        functions: names of functions, or of headers whose functions accept the options.
    """

    header: str
    functions: str
    options: tuple[Option, ...]


@functools.cache
def read() -> dict[str, OptionTable]:
    """Returns the tables by name.

    Example:
        >>> [option.name for option in read()["stream_options"].options]
        ['bufferingDepth', 'splitLimit']
    """
    reasons = {row["reason"]: row["text"] for row in data_files.rows(__file__, "reasons.csv")}
    options: dict[str, list[Option]] = {}
    for row in [*data_files.rows(__file__, "options.csv"), *_engine_rows()]:
        option = Option(row["option"], tuple(row["values"].split(", ")), row["without_effect"].format_map(reasons))
        options.setdefault(row["table"], []).append(option)
    return {
        row["table"]: OptionTable(
            row["header"], row["functions"], (*options[row["table"]], *options.get(row["with"], ()))
        )
        for row in data_files.rows(__file__, "option_tables.csv")
    }


def _engine_rows() -> list[dict[str, str]]:
    return [
        {**row, "table": _ENGINE, "without_effect": row["without_effect_in_poplar_programs"]}
        for row in engine_options.rows()
    ]
