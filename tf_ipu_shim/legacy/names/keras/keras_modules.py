"""Creates modules under the names Keras had in TensorFlow 1.15 to 2.6, from the installed Keras 2.

A module that is now one other is that module. A package, and a module whose names moved to several modules, is a
separate object that looks names up. An alias would replace submodules of the same name.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.legacy.names.keras import keras_paths

_MISSING = object()


class KerasModule(types.ModuleType):
    """A module of an old release: its names are those of the modules that it leads to.

    Args:
        fullname: under which scripts import it.
        targets: full names of modules; a name is read from the first one that has it.
        older: a module that has names which they lack.
    """

    def __init__(self, fullname: str, targets: Sequence[str], older: types.ModuleType | None = None):
        super().__init__(fullname, f"What Keras called {fullname}, from: {', '.join(targets)}.")
        self.__path__: list[str] = []
        self._targets = tuple(targets)
        self._older = [older] if older is not None else []

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [name for name in dir(self) if not name.startswith("_")]
        if not name.startswith("__"):
            attribute = self._look_up(name)
            if attribute is _MISSING or isinstance(attribute, types.ModuleType):
                below = f"{self.__name__}.{name}"
                if importlib.util.find_spec(below) is not None:
                    return importlib.import_module(below)
            if attribute is not _MISSING:
                return attribute
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for target in self._modules() for name in dir(target))})

    def _look_up(self, name: str) -> Any:
        for spelling in dict.fromkeys((name, name.lstrip("_"))):  # helpers that several files use lost their underscore
            for module in self._modules():
                attribute = getattr(module, spelling, _MISSING)
                if attribute is not _MISSING:
                    return attribute
        return _MISSING

    def _modules(self) -> list[types.ModuleType]:
        return [*map(importlib.import_module, self._targets), *self._older]


class KerasLoader(Loader):
    """Makes the module that `spec` asks for."""

    def __init__(self, targets: Sequence[str], is_package: bool, older: types.ModuleType | None):
        self.targets = targets
        self.is_package = is_package
        self.older = older

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Returns the module that has all names, or one that looks them up in several."""
        if self.is_package:
            return KerasModule(spec.name, self.targets, self.older)
        module = importlib.import_module(self.targets[0])
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Restores an existing module's spec, which importlib has just replaced."""
        if not self.is_package:
            module.__spec__ = self._own_spec


def is_keras_2() -> bool:
    """Returns whether `keras` is Keras 2: the installed one, or the one that an IPU script imports (`keras_name`).

    Example:
        >>> keras2.has_engine("keras.src") <= is_keras_2()
        True
    """
    return keras2.has_engine("keras.src") or sys.modules.get("keras", _MISSING) is sys.modules.get("tf_keras")


def spec(
    fullname: str, path: str, public: str | None = None, older: types.ModuleType | None = None
) -> ModuleSpec | None:
    """Returns how a module of an old release is loaded, or None if the installed Keras 2 has no part of it."""
    targets, is_package = _targets(keras2.root(), path)
    if public is not None and _exists(public):
        # The public API defines what a name means: it has other classes for TensorFlow 1, and other optimizers.
        targets = [public, *targets]
    if not targets and path not in keras_paths.PACKAGES:
        return None
    is_package = is_package or len(targets) != 1 or older is not None
    return ModuleSpec(fullname, KerasLoader(targets, is_package, older), is_package=is_package)


@functools.cache
def _targets(root: str, path: str) -> tuple[list[str], bool]:
    """Returns the existing modules that `path` leads to, and whether one of them is a package."""
    names = [f"{root}.{below}" if below else root for below in keras_paths.modules(path)]
    existing = [name for name in names if _exists(name)]
    return existing, any(_is_package(name) for name in existing)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None
