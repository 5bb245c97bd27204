"""Raises an error that names the Graphcore module or attribute when this package does not support it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.imports import import_callers
from tf_ipu_shim.names import alternatives, graphcore_names, keras_ops, suggestions


def is_known_module(fullname: str) -> bool:
    """Returns whether some SDK has a module of this (Graphcore) name."""
    return fullname in graphcore_names.modules()


def describe_absence(fullname: str, releases: str) -> str:
    """Returns the refusal: the requested name, its releases, why it is not supported, the fix."""
    reason = alternatives.reason_and_alternative(fullname)
    if reason:
        return f"Graphcore's {fullname} exists in SDK {releases} but tf_ipu_shim does not emulate it: {reason}"
    return (
        f"Graphcore's {fullname} exists in SDK {releases} but tf_ipu_shim does not emulate it yet. "
        "docs/reference/names/coverage.md in the project's sources lists the emulated names. CONTRIBUTING.md there "
        "says how to add one."
    )


class RefusingLoader(Loader):
    """Raises `MissingModuleError` when the module is really imported; asking for its spec stays harmless."""

    def __init__(self, fullname: str):
        self.fullname = fullname

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Refuses."""
        releases = graphcore_names.modules()[self.fullname]
        raise errors.MissingModuleError(describe_absence(self.fullname, releases), name=f"{self.fullname} (emulated)")

    def exec_module(self, module: types.ModuleType) -> None:
        """Never reached: `create_module` raises."""


def extend_loader(loader: Any, theirs: str) -> None:
    """Makes `loader` install the refusing `__getattr__` on its module, whose ops then accept Keras' tensors."""
    execute: Callable[[types.ModuleType], None] = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        execute(module)
        module_getattr = module.__dict__.get("__getattr__")
        module.__dict__["__getattr__"] = _refusing_getattr(module.__name__, theirs, module_getattr)
        if keras_ops.is_op_module(theirs):
            keras_ops.wrap_op(module, theirs)

    loader.exec_module = exec_module


def _refusing_getattr(ours: str, theirs: str, module_getattr: Callable[[str], Any] | None) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if module_getattr is not None:
            try:
                return module_getattr(name)
            except errors.MissingAttributeError:
                raise
            except AttributeError as error:
                if _is_raised_inside(error):
                    raise ImportError(
                        f"{theirs}.{name} could not be loaded. Fix the error in its code: {error}", name=theirs
                    ) from error
        if is_known_module(f"{theirs}.{name}"):
            return _submodule_name(theirs, name, import_callers.is_import_from(sys._getframe(1)))
        releases = graphcore_names.attributes(theirs).get(name)
        if releases is None:
            if import_callers.is_import_from(sys._getframe(1)) and f"{ours}.{name}" not in sys.modules:
                if _was_loaded_since(theirs, name):
                    return importlib.import_module(f"{theirs}.{name}")
                raise ImportError(suggestions.unknown_import_message(ours, theirs, name), name=theirs)
            # With a separate object, Python adds no second suggestion when it shows the error.
            raise AttributeError(suggestions.unknown_name_message(ours, theirs, name), name=name, obj=None)
        message = describe_absence(f"{theirs}.{name}", releases)
        if import_callers.is_import_from(sys._getframe(1)):
            raise errors.MissingModuleError(message, name=theirs)
        raise errors.MissingAttributeError(message)

    return __getattr__


def _was_loaded_since(package: str, name: str) -> bool:
    """Returns whether another finder has a module in a package; `from` asks finders only for our name."""
    if not hasattr(sys.modules.get(package), "__path__"):
        return False
    return importlib.util.find_spec(f"{package}.{name}") is not None


def _submodule_name(package: str, name: str, is_import_from: bool) -> types.ModuleType:
    """Returns a module that is not imported yet: Graphcore's packages have theirs as attributes from the start."""
    try:
        return importlib.import_module(f"{package}.{name}")
    except errors.MissingModuleError as error:
        if is_import_from:
            raise
        raise errors.MissingAttributeError(str(error)) from error


def _is_raised_inside(error: AttributeError) -> bool:
    """Whether a module's own `__getattr__` failed while it imported something, rather than lacking the name."""
    inner_frame = error.__traceback__.tb_next if error.__traceback__ else None
    return inner_frame is not None and inner_frame.tb_next is not None
