"""Maps Graphcore's module names to this package's modules; both names give the same module object."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder

from tf_ipu_shim.names import missing, stock_aliases

# Graphcore's name -> ours. A name below the left-hand side maps to the same name below the right-hand side.
ALIASES = {
    "tensorflow.python.ipu": "tf_ipu_shim.ipu",
    "tensorflow.compiler.plugin.poplar": "tf_ipu_shim.poplar",
}
# Packages that stock TensorFlow lacks and that hold nothing but one of the names above.
EMPTY_PACKAGES = ("tensorflow.compiler.plugin",)
# Our packages whose modules say so when Graphcore has a name and they do not.
OWN_PACKAGES = tuple(ALIASES.values())


def own_name(fullname: str) -> str | None:
    """Our name of the module that Graphcore calls `fullname`, or None.

    Example:
        >>> own_name("tensorflow.python.ipu.utils")
        'tf_ipu_shim.ipu.utils'
    """
    for theirs, ours in ALIASES.items():
        if fullname == theirs or fullname.startswith(theirs + "."):
            return ours + fullname[len(theirs) :]
    return None


def graphcore_name(fullname: str) -> str | None:
    """Graphcore's name of our module `fullname`, or None; the reverse of `own_name`."""
    for theirs, ours in ALIASES.items():
        if fullname == ours or fullname.startswith(ours + "."):
            return theirs + fullname[len(ours) :]
    return None


def find_spec(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of a module that this package serves, or None to let Python's own finders answer.

    A Graphcore wheel that really has the module wins: where Python finds a file for it, this finder stays away.
    """
    theirs = graphcore_name(fullname)
    if theirs is not None:
        return _find_own(fullname, theirs, path)
    ours = own_name(fullname)
    if ours is not None:
        return _find_alias(fullname, ours, path)
    if fullname in EMPTY_PACKAGES:
        return None if _installed(fullname, path) else ModuleSpec(fullname, _EmptyPackageLoader(), is_package=True)
    stock = stock_aliases.find(fullname)
    if stock is not None:
        return None if _installed(fullname, path) else ModuleSpec(fullname, AliasLoader(stock))
    if missing.knows_module(fullname) and not _installed(fullname, path):
        return ModuleSpec(fullname, missing.RefusingLoader(fullname))
    return None


def _find_own(fullname: str, theirs: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The ordinary spec of one of our modules, its loader extended by the refusal of missing names."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is None:
        return ModuleSpec(fullname, missing.RefusingLoader(theirs)) if missing.knows_module(theirs) else None
    if spec.loader is not None:
        missing.extend_loader(spec.loader, theirs)
    return spec


def _find_alias(fullname: str, ours: str, path: Sequence[str] | None) -> ModuleSpec | None:
    parent = fullname.rpartition(".")[0]
    if fullname in ALIASES:
        if _installed(fullname, path):
            return None
    elif sys.modules.get(parent) is not sys.modules.get(ours.rpartition(".")[0], parent):
        return None  # The parent is Graphcore's own package, and so are the modules in it.
    target = importlib.util.find_spec(ours)
    if target is None:
        return None
    if isinstance(target.loader, missing.RefusingLoader):
        return ModuleSpec(fullname, target.loader)
    return ModuleSpec(fullname, AliasLoader(ours), origin=target.origin, is_package=_is_package(target))


def _is_package(spec: ModuleSpec) -> bool:
    return spec.submodule_search_locations is not None


def _installed(fullname: str, path: Sequence[str] | None) -> bool:
    return PathFinder.find_spec(fullname, path) is not None


class AliasLoader:
    """Loads a module by giving out the one that exists under another name."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Imports the target; importlib registers it under `spec.name` too and sets it on the parent package."""
        module = importlib.import_module(self.target)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Gives the module its own spec back, which importlib has just replaced by the alias's."""
        module.__spec__ = self._own_spec


class _EmptyPackageLoader:
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        return None
