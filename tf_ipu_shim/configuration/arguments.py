"""Reads the effects of API calls' arguments (`arguments.csv`), and records arguments set without effect.

The call notes an argument without effect by its row's name. `tests/house/test_arguments.py` looks for arguments that
are neither read nor noted.
"""

from __future__ import annotations

import ast
import enum
import numbers
from dataclasses import dataclass, field
from typing import Any

from tf_ipu_shim import data_files
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import OptionEffect


@dataclass(frozen=True)
class Argument:
    """The effect of an argument.

    Args:
        effect: one of `machine.environment.effects.EFFECTS`.
        default: the default of an argument without effect; with this value it counts as not passed.
    """

    effect: str
    meaning: str
    default: Any = None


@dataclass(frozen=True)
class Call:
    """A call, or several calls with the same arguments.

    Args:
        heading: the heading of the section in the reference of options.
        page: the file in `docs/reference/options` that has the section.
        arguments: the arguments by name. Arguments of the computation itself, such as a layer's size, are left out.
    """

    heading: str
    page: str
    arguments: dict[str, Argument] = field(default_factory=dict)


def _read() -> dict[str, Call]:
    """Returns the table; the first row of a call has its heading and page."""
    calls: dict[str, Call] = {}
    for row in data_files.rows(__file__, "arguments.csv"):
        call = calls.setdefault(row["call"], Call(row["heading"], row["page"]))
        default = ast.literal_eval(row["default"]) if row["default"] else None
        call.arguments[row["argument"]] = Argument(row["effect"], reasons.fill(row["meaning"]), default)
    return calls


CALLS = _read()


def effects(call: str) -> tuple[OptionEffect, ...]:
    """Returns the effects of a call's arguments.

    Example:
        >>> effects("nn_ops.softmax")[0].effect
        'no effect'
    """
    entries = CALLS[call].arguments.items()
    return tuple(OptionEffect(name=name, effect=row.effect, meaning=row.meaning) for name, row in entries)


def note_arguments(call: str, **values: Any) -> None:
    """Records arguments without effect, unless they have their defaults, for the memory report and the log.

    Called once per call in a script, never while a program runs.

    Args:
        call: a key of `CALLS`.
        **values: values by the names of rows.

    Example:
        >>> note_arguments("fifo", offload=False)
    """
    arguments = CALLS[call].arguments
    changed = {
        f"{call}({name})": _plain(value) for name, value in values.items() if not _same(value, arguments[name].default)
    }
    if changed:
        from tf_ipu_shim.runtime import ignored_options

        ignored_options.note_arguments(changed)


def _same(value: Any, default: Any) -> bool:
    """Returns whether a value is the default. Tensors and other objects of a script are never equal to it."""
    if value is None or value is default:
        return True
    if isinstance(default, str):
        return _plain(value) == default
    return isinstance(value, numbers.Number) and isinstance(default, numbers.Number) and value == default


def _plain(value: Any) -> Any:
    """Returns a value as the report stores it: data unchanged, a dtype's name, else the name of its class."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, enum.Enum)):
        return value
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, type):
        return value.__name__
    if type(value).__name__ == "DType":
        return value.name
    return type(value).__name__
