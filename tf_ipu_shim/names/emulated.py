"""Determines whether a Graphcore name is emulated, for `docs/coverage.md` and `tf-ipu check`."""

from __future__ import annotations

import functools
import importlib
import types
from typing import NamedTuple

from tf_ipu_shim import errors
from tf_ipu_shim.names import finder, graphcore_names, missing
from tf_ipu_shim.names.refused import refusal

EMULATED, REFUSED, MISSING = "emulated", "refused", "missing"


class Verdict(NamedTuple):
    """What becomes of a name.

    Args:
        state: `EMULATED`; `REFUSED`, where it is there and every call of it fails; `MISSING`.
        reason: why it is refused or missing, and what to do; empty where it is emulated.
    """

    state: str
    reason: str = ""


def verdict(module: str, name: str) -> Verdict:
    """What becomes of a public name of one of Graphcore's modules.

    Args:
        module: Graphcore's name of the module, as scripts import it.
        name: an attribute of the module.

    Example:
        >>> verdict("tensorflow.python.ipu.config", "IPUConfig").state
        'emulated'
    """
    found = _imported(module)
    if isinstance(found, str):
        return Verdict(MISSING, found)
    try:
        thing = getattr(found, name)
    except (errors.MissingAttributeError, ImportError) as error:
        return Verdict(MISSING, str(error))
    except AttributeError:
        releases = graphcore_names.attributes(module).get(name)
        known = missing.describe(f"{module}.{name}", releases) if releases else f"No SDK's {module} has {name}."
        return Verdict(MISSING, known)
    reason = refusal(thing)
    return Verdict(REFUSED, f"{name} {reason}") if reason else Verdict(EMULATED)


def module_reason(module: str) -> str:
    """Why one of Graphcore's modules cannot be had; empty where it can."""
    found = _imported(module)
    return found if isinstance(found, str) else ""


def is_module(name: str) -> bool:
    """Whether a name below Graphcore's packages is a module here, also one that no list of theirs has.

    Example:
        >>> is_module("popdist"), is_module("tensorflow.python.ipu.config.IPUConfig")
        (True, False)
    """
    return not isinstance(_imported(name), str)


def module_behind(module: str, name: str) -> str:
    """Graphcore's name of a module that is an attribute of another under a name of its own; empty for anything else.

    Example:
        >>> module_behind("tensorflow.python.ipu", "rnn_ops")
        'tensorflow.python.ipu.ops.rnn_ops'
    """
    thing = getattr(_imported(module), name, None)
    if not isinstance(thing, types.ModuleType):
        return ""
    return finder.graphcore_name(thing.__name__) or thing.__name__


def lineage(module: str, name: str) -> list[str]:
    """The names of a class and of those it is derived from; the name alone of anything else.

    Args:
        module: Graphcore's name of the module, as scripts import it.
        name: an attribute of the module.

    Example:
        >>> lineage("tensorflow.python.ipu.ops.rnn_ops", "PopnnAUGRU")[:2]
        ['PopnnAUGRU', 'PopnnGRU']
    """
    thing = getattr(_imported(module), name, None)
    return [name, *(kind.__name__ for kind in thing.__mro__[1:])] if isinstance(thing, type) else [name]


@functools.cache
def _imported(module: str) -> types.ModuleType | str:
    """The module as scripts import it, or why there is none."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        return str(error)
