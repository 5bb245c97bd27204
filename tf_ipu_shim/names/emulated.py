"""Determines whether a Graphcore name is emulated, for `docs/reference/names/coverage.md` and `tf-ipu check`.

If TensorFlow is loaded, the modules themselves answer, else a table of them (`emulated_table`).
"""

from __future__ import annotations

import functools
import importlib
import types
from typing import NamedTuple

from tf_ipu_shim import errors
from tf_ipu_shim.names import emulated_table, finder, graphcore_names, keywords, unsupported_names
from tf_ipu_shim.names.not_supported_marker import refusal_of

EMULATED, REFUSED, MISSING = "emulated", "refused", "missing"


class EmulationStatus(NamedTuple):
    """How a name is handled.

    Args:
        state: `EMULATED`, `MISSING`, or `REFUSED` if it exists and every call fails.
        reason: why it is refused or missing, and what to do; empty if it is emulated.
    """

    state: str
    reason: str = ""


def get_status(module: str, name: str) -> EmulationStatus:
    """Determines how a public name of a Graphcore module is handled.

    Example:
        >>> get_status("tensorflow.python.ipu.config", "IPUConfig").state
        'emulated'
    """
    if emulated_table.is_used():
        return _table_status(module, name)
    imported = _import_or_none(module)
    if isinstance(imported, str):
        return EmulationStatus(MISSING, imported)
    try:
        attribute = getattr(imported, name)
    except (errors.MissingAttributeError, ImportError) as error:
        return EmulationStatus(MISSING, str(error))
    except AttributeError:
        return EmulationStatus(MISSING, _absence(module, name))
    reason = refusal_of(attribute)
    return EmulationStatus(REFUSED, f"{name} {reason}") if reason else EmulationStatus(EMULATED)


def _absence(module: str, name: str) -> str:
    releases = graphcore_names.attributes(module).get(name)
    if releases:
        return unsupported_names.describe_absence(f"{module}.{name}", releases)
    return f"No SDK's {module} has {name}."


def _table_status(module: str, name: str) -> EmulationStatus:
    rows = emulated_table.table().modules.get(module)
    if rows is None:
        return EmulationStatus(MISSING, emulated_table.table().absent.get(module) or f"No module named {module!r}")
    row = rows.get(name)
    if row is None:
        return EmulationStatus(MISSING, _absence(module, name))
    return EmulationStatus(row.get("state", EMULATED), row.get("reason", ""))


def unsupported_module_reason(module: str) -> str:
    """Why a Graphcore module is not supported; empty if it is."""
    if emulated_table.is_used():
        return "" if is_module(module) else emulated_table.table().absent.get(module) or f"No module named {module!r}"
    imported = _import_or_none(module)
    return imported if isinstance(imported, str) else ""


def is_module(name: str) -> bool:
    """Returns whether a name below Graphcore's packages is a module here, also one that is in none of their lists.

    Example:
        >>> is_module("popdist"), is_module("tensorflow.python.ipu.config.IPUConfig")
        (True, False)
    """
    if emulated_table.is_used():
        return name in emulated_table.table().modules
    return not isinstance(_import_or_none(name), str)


def implementing_module(module: str, name: str) -> str:
    """Returns Graphcore's name of a module that another module has as an attribute; empty for anything else.

    Example:
        >>> implementing_module("tensorflow.python.ipu", "rnn_ops")
        'tensorflow.python.ipu.ops.rnn_ops'
    """
    if emulated_table.is_used():
        return str(_row(module, name).get("module", ""))
    attribute = getattr(_import_or_none(module), name, None)
    if not isinstance(attribute, types.ModuleType):
        return ""
    return finder.graphcore_name(attribute.__name__) or attribute.__name__


def argument_names(module: str, name: str) -> list[str] | None:
    """Returns the arguments of a call of a name; None if they are unknown or any is accepted.

    Example:
        >>> argument_names("tensorflow.python.ipu.utils", "reset_ipu_seed")
        ['seed', 'device', 'cpu_device', 'experimental_identical_replicas']
    """
    if emulated_table.is_used():
        return _row(module, name).get("arguments")
    attribute = getattr(_import_or_none(module), name, None)
    return keywords.names_of(attribute) if callable(attribute) else None


def class_lineage(module: str, name: str) -> list[str]:
    """Returns the names of a class and of its base classes; only the name of anything else.

    Example:
        >>> class_lineage("tensorflow.python.ipu.ops.rnn_ops", "PopnnAUGRU")[:2]
        ['PopnnAUGRU', 'PopnnGRU']
    """
    if emulated_table.is_used():
        return list(_row(module, name).get("lineage", [name]))
    attribute = getattr(_import_or_none(module), name, None)
    return [name, *(kind.__name__ for kind in attribute.__mro__[1:])] if isinstance(attribute, type) else [name]


def _row(module: str, name: str) -> emulated_table.Row:
    return emulated_table.table().modules.get(module, {}).get(name, {})


@functools.cache
def _import_or_none(module: str) -> types.ModuleType | str:
    """Returns the module as scripts import it, or why there is none."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        return str(error)
