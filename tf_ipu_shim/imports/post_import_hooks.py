"""Runs a callback after any loader has loaded a module."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import patches


class PostImportFinder:
    """A finder that delegates to the others and calls a function after the module is loaded.

    Args:
        matches: returns whether a module, by its full name, is one of them.
        while_loading: makes a context in which each is executed.
    """

    def __init__(
        self,
        matches: Callable[[str], bool],
        loaded: Callable[[types.ModuleType], None] = lambda _: None,
        while_loading: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._wanted, self._loaded, self._while_loading = matches, loaded, while_loading

    def install(self, label: str, why: str) -> None:
        """Puts it before the other finders; calling it again changes nothing.

        Example:
            >>> PostImportFinder("colorsys".__eq__).install("colours", why="an example")
            >>> "sys.meta_path: colours" in [change.target for change in patches.applied()]
            True
        """
        patches.change(
            f"sys.meta_path: {label}",
            lambda: sys.meta_path.insert(0, self),  # type: ignore[arg-type]
            lambda: sys.meta_path.remove(self),  # type: ignore[arg-type]
            why=why,
            undone="the finder is removed",
        )

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Finds a module, as a finder of `sys.meta_path` does."""
        if not self._wanted(fullname):
            return None
        # Those before have been asked; another of this kind would ask this one.
        finders: list[Any] = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    wrap_loader(spec.loader, self._while_loading, self._loaded)
                return spec
        return None


def call_once_loaded(name: str, loaded: Callable[[types.ModuleType], None], why: str) -> None:
    """Calls a function with a module, now or when it is loaded.

    Example:
        >>> call_once_loaded("sys", lambda module: print(module.__name__), why="an example")
        sys
    """
    module = sys.modules.get(name)
    if module is not None:
        loaded(module)
    else:
        PostImportFinder(name.__eq__, loaded).install(name, why)


def call_after_loading(loader: Any, loaded: Callable[[types.ModuleType], None]) -> None:
    """Makes a loader call a function with the module that it loads next.

    Example:
        >>> import importlib.util
        >>> spec = importlib.util.find_spec("this_or_that") or importlib.util.find_spec("colorsys")
        >>> call_after_loading(spec.loader, lambda module: print(module.__name__))
        >>> spec.loader.exec_module(importlib.util.module_from_spec(spec))
        colorsys
    """
    wrap_loader(loader, contextlib.nullcontext, loaded)


def wrap_loader(
    loader: Any,
    while_loading: Callable[[], contextlib.AbstractContextManager[Any]],
    loaded: Callable[[types.ModuleType], None] = lambda _: None,
) -> None:
    """Works like `call_after_loading`, with the module executed in a context."""
    changed, execute = "exec_module" in vars(loader), loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        if changed:
            loader.exec_module = execute  # of another that waits for the same import
        else:
            del loader.exec_module
        with while_loading():
            execute(module)
        loaded(module)

    loader.exec_module = exec_module
