"""Serves Graphcore's modules that only re-export names, from `reexports.txt` instead of a file each."""

from __future__ import annotations

import functools
import pathlib
import re
import sys
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

_FILE = pathlib.Path(__file__).with_suffix(".txt")
_PACKAGE = "tf_ipu_shim"


@functools.cache
def table() -> dict[str, tuple[str, dict[str, dict[str, str]]]]:
    """Our module -> the end of its docstring, and by source module the exported names: theirs by ours.

    Example:
        >>> table()["tf_ipu_shim.api.ipu.ipu_compiler"][1]
        {'tf_ipu_shim.frontend.tracing.ipu_compiler': {'compile': 'compile'}}
    """
    rows = {}
    _, *paragraphs = _FILE.read_text(encoding="ascii").replace("\n  ", " ").strip().split("\n\n")
    for paragraph in paragraphs:
        head, *lines = paragraph.split("\n")
        name = re.match(r"[\w.]+", head)[0]  # type: ignore[index]
        sources = {}
        for line in lines:
            source, _, names = line.partition(": ")
            pairs = (word.partition("=") for word in names.split())
            sources[f"{_PACKAGE}.{source}"] = {exported: source_name or exported for exported, _, source_name in pairs}
        rows[f"{_PACKAGE}.{name}"] = head[len(name) :], sources
    return rows


def find_spec(fullname: str, theirs: str) -> ModuleSpec | None:
    """Returns the spec of a module that only re-exports, or None."""
    return ModuleSpec(fullname, ReexportLoader(theirs)) if fullname in table() else None


class ReexportingModule(types.ModuleType):
    """A module of re-exports: a function that a script replaces in it is replaced where it is implemented, too.

    In Graphcore's package the module is the implementation, so that its other modules call the replacement.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, types.ModuleType):
            for source, names in table()[self.__name__][1].items():
                if name in names:
                    self._replace(sys.modules[source], names[name], vars(self).get(name), value)
        super().__setattr__(name, value)

    def _replace(self, source: types.ModuleType, source_name: str, before: Any, value: Any) -> None:
        """Replaces a name of the source or restores it: the two may differ by a wrapper of ours."""
        mine, theirs = (
            vars(self).setdefault("_replaced", {}).setdefault(source_name, (before, vars(source).get(source_name)))
        )
        setattr(source, source_name, theirs if value is mine else value)


class ReexportLoader(Loader):
    """Fills a module with the names of its row."""

    def __init__(self, theirs: str) -> None:
        self._theirs = theirs

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Makes a module that forwards assignments to its names."""
        return ReexportingModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Imports the names as `from source import name` does, so that a name may be a submodule of its source."""
        description, sources = table()[module.__name__]
        module.__doc__ = f"`{self._theirs}`{description}"
        for source, names in sources.items():
            source_module = __import__(source, fromlist=tuple(names.values()))
            vars(module).update({name: getattr(source_module, source_name) for name, source_name in names.items()})
        module.__dict__["__all__"] = sorted(name for names in sources.values() for name in names if name[0] != "_")
