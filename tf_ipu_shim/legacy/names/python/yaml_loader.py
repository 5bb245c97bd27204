"""Accepts `yaml.load` without a loader, which PyYAML 6 no longer does.

Such a call gets the loader that PyYAML 5 took for it. Checked on PyYAML 6.0.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.imports import import_callers, post_import_hooks

_LOADS = ("load", "load_all")


def install() -> None:
    """Adds a loader to scripts' calls of PyYAML, now or once it is imported."""
    why = "yaml.load without a loader, when a script imports PyYAML"
    post_import_hooks.call_once_loaded("yaml", _loaded, why)


def _loaded(module: types.ModuleType) -> None:
    for name in _LOADS:
        if hasattr(module, name):
            patches.replace(module, name, lambda stock: _with_loader(stock, module), why="`yaml.load(file)` of scripts")


def _with_loader(stock: Callable[..., Any], module: Any) -> Callable[..., Any]:
    @functools.wraps(stock)
    def load(stream: Any, *loader: Any, **named: Any) -> Any:
        if not loader and not named and import_callers.is_script_file(sys._getframe(1).f_code.co_filename):
            loader = (module.FullLoader,)
        return stock(stream, *loader, **named)

    return load
