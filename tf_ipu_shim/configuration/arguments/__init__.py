"""The effects of arguments of API calls: pipelines, layers, models, feeds, ops, optimizers, host calls.

An argument that changes nothing is a row here, and the call notes it by the row's name. `tests/house/test_arguments.py`
looks for arguments that no one reads and no one notes.
"""

from __future__ import annotations

import enum
import numbers
from typing import Any

from tf_ipu_shim.configuration.arguments import feeds, hosts, layers, models, operations, optimizers, pipelines
from tf_ipu_shim.configuration.arguments.call import Call
from tf_ipu_shim.machine.environment.effects import OptionEffect

CALLS: dict[str, Call] = {
    name: call
    for subject in (pipelines, layers, models, feeds, operations, optimizers, hosts)
    for name, call in subject.CALLS.items()
}


def effects(call: str) -> tuple[OptionEffect, ...]:
    """Returns the effects of a call's arguments.

    Example:
        >>> effects("nn_ops.softmax")[0].effect
        'no effect'
    """
    rows = CALLS[call].arguments.items()
    return tuple(OptionEffect(name=name, effect=row.effect, meaning=row.meaning) for name, row in rows)


def note_arguments(call: str, **values: Any) -> None:
    """Records arguments that change nothing, unless they have their defaults: for the memory report and the log.

    Called once where a script calls, never where a program runs.

    Args:
        call: a key of `CALLS`.
        **values: values by the names of rows.

    Example:
        >>> note_arguments("fifo", offload=False)
    """
    rows = CALLS[call].arguments
    changed = {
        f"{call}({name})": _plain(value) for name, value in values.items() if not _same(value, rows[name].default)
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
