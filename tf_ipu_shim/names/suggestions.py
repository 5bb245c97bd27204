"""Suggests the nearest name for a misspelt name of a Graphcore module."""

from __future__ import annotations

import functools
import sys

from tf_ipu_shim import spelling
from tf_ipu_shim.names import graphcore_names

MISNAMED = "tensorflow.ipu"
"""Where newcomers look for Graphcore's module."""
MISNAMED_HINT = "Graphcore's module is tensorflow.python.ipu. Write `from tensorflow.python import ipu`."


def unknown_name_message(ours: str, theirs: str, name: str) -> str:
    """Returns the message for a name that Graphcore's module has in no release.

    Example:
        >>> unknown_name_message("tf_ipu_shim.api.ipu.loops", "tensorflow.python.ipu.loops", "repeat_")
        "module 'tensorflow.python.ipu.loops' has no attribute 'repeat_'. Did you mean 'repeat'?"
    """
    return f"module {theirs!r} has no attribute {name!r}{_suggest(ours, theirs, name)}"


def unknown_import_message(ours: str, theirs: str, name: str) -> str:
    """Returns the same for a name that `from module import name` asked for."""
    return f"cannot import name {name!r} from {theirs!r}{_suggest(ours, theirs, name)}"


def _suggest(ours: str, theirs: str, name: str) -> str:
    if name.startswith("_"):
        return ""  # names that Python and its tools probe for: no user misspells these
    module = sys.modules.get(ours)
    candidates = {public for public in getattr(module, "__all__", None) or dir(module) if not public.startswith("_")}
    candidates.update(graphcore_names.attributes(theirs))
    inside = f"{theirs}."
    modules = (name.removeprefix(inside) for name in graphcore_names.modules() if name.startswith(inside))
    candidates.update(name.partition(".")[0] for name in modules)
    elsewhere = _name_locations().get(name)
    if elsewhere and not spelling.nearest(name, candidates, 0.9):
        return f". {elsewhere} has it."
    hint = spelling.did_you_mean(name, sorted(candidates))
    return hint and f".{hint}"


@functools.cache
def _name_locations() -> dict[str, str]:
    """Name -> the module of `tensorflow.python.ipu` that has it, the one with the shortest name of several."""
    module_of: dict[str, str] = {}
    for module in sorted(graphcore_names.modules(), key=lambda module: (module.count("."), module)):
        if module.startswith("tensorflow.python.ipu"):
            for name in graphcore_names.attributes(module):
                module_of.setdefault(name, module)
    return module_of
