"""Something to do when a module has been loaded, by whichever loader does it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


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
