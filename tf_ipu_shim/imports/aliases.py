"""Loads module aliases, whose two names are one module object, and packages that contain only such names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from importlib.abc import InspectLoader, Loader
from importlib.machinery import ModuleSpec

# Names of modules that are there only because of this package's finders.
served: list[str] = []


def make_alias_spec(fullname: str, target: ModuleSpec) -> ModuleSpec:
    """Returns the spec of a module alias."""
    is_package = target.submodule_search_locations is not None
    return ModuleSpec(fullname, AliasLoader(target.name), origin=target.origin, is_package=is_package)


def find_alias_spec(fullname: str) -> ModuleSpec | None:
    """Works like `importlib.util.find_spec`, and None if a parent package is missing, such as an optional Keras."""
    try:
        return importlib.util.find_spec(fullname)
    except ModuleNotFoundError as error:
        if error.name and fullname.startswith(error.name):
            return None
        raise


class AliasLoader(Loader):
    """Loads a module by returning the one that exists under another name."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Imports the target; importlib registers it under `spec.name` too and sets it on the parent package."""
        served.append(spec.name)
        module = importlib.import_module(self.target)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Restores the module's spec, which importlib has just replaced by the alias's."""
        module.__spec__ = self._own_spec

    def get_code(self, fullname: str) -> types.CodeType | None:
        """Returns the code of the module, which `python -m` runs."""
        spec = importlib.util.find_spec(self.target)
        loader = spec.loader if spec is not None else None
        return loader.get_code(self.target) if isinstance(loader, InspectLoader) else None


class EmptyPackageLoader(Loader):
    """Loads a package that contains only names served here."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Uses Python's default module creation."""
        served.append(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves it empty."""


def remove_aliases() -> None:
    """Removes all served names from `sys.modules` and from their parents."""
    while served:
        name = served.pop()
        module = sys.modules.pop(name, None)
        parent, _, last = name.rpartition(".")
        if module is not None and vars(sys.modules.get(parent, module)).get(last) is module:
            delattr(sys.modules[parent], last)
