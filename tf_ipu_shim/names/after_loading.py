"""Something to do when a module has been loaded, by whichever loader does it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any


class Finder:
    """Has the other finders find a module, and calls a function with it when it has been loaded.

    Args:
        wanted: tells whether a module, by its full name, is one of them.
        loaded: is called with each.
    """

    def __init__(self, wanted: Callable[[str], bool], loaded: Callable[[types.ModuleType], None]) -> None:
        self._wanted, self._loaded = wanted, loaded

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """As finders of `sys.meta_path` answer."""
        if not self._wanted(fullname):
            return None
        for other in sys.meta_path:
            spec = other.find_spec(fullname, path, target) if other is not self else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    call(spec.loader, self._loaded)
                return spec
        return None


def call(loader: Any, loaded: Callable[[types.ModuleType], None]) -> None:
    """Makes a loader call a function with the module that it loads next.

    Args:
        loader: made for one import; afterwards it is as it was.
        loaded: is called when the module has been executed.

    Example:
        >>> import importlib.util
        >>> spec = importlib.util.find_spec("this_or_that") or importlib.util.find_spec("colorsys")
        >>> call(spec.loader, lambda module: print(module.__name__))
        >>> spec.loader.exec_module(importlib.util.module_from_spec(spec))
        colorsys
    """
    execute = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        del loader.exec_module
        execute(module)
        loaded(module)

    loader.exec_module = exec_module
