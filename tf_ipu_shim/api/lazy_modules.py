"""Lazily loads submodules and names: `import ipu_tensorflow_addons` must not import Keras."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tf_ipu_shim import errors

Getattr = Callable[[str], Any]
Dir = Callable[[], list[str]]


def lazy(
    package: str, modules: str | Mapping[str, str] = "", names: Mapping[str, str] = MappingProxyType({})
) -> tuple[Getattr, Dir]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        modules: its modules that are attributes of it, separated by blanks. If some are deeper, a mapping with the path
            of each.
        names: the names that it has from each module, separated by blanks; `a=b` exports `b` as `a`. The module is an
            attribute too, unless it is deeper (`ops.functional_ops`) or next to the package (`.scopes`).

    Example:
        >>> __getattr__, __dir__ = lazy(__name__, "math", {"dropout": "Dropout"})
    """
    paths = attribute_paths(modules, names)
    sources = attribute_sources(names)
    exported = sorted(name for name, (module, _) in sources.items() if "." not in module.removeprefix("."))

    def __getattr__(name: str) -> Any:
        if name == "__all__" and exported:
            return exported
        if name not in paths and name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, source_name = sources[name] if name in sources else (paths[name], "")
        try:
            attribute = importlib.import_module(f".{module}", package)
        except errors.MissingModuleError as error:
            raise refused(error) from error
        if source_name:
            attribute = getattr(attribute, source_name)
        setattr(sys.modules[package], name, attribute)
        return attribute

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *paths, *sources})

    return __getattr__, __dir__


def attribute_paths(modules: str | Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Returns the modules that `lazy` serves, each with its path below the package.

    Example:
        >>> attribute_paths("math", {"dropout": "Dropout", ".scopes": "ipu_scope"})
        {'math': 'math', 'dropout': 'dropout'}
    """
    given = modules if isinstance(modules, Mapping) else {module: module for module in modules.split()}
    return {**given, **{module: module for module in names if "." not in module}}


def attribute_sources(names: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns the names that `lazy` serves, each with its module and its name there.

    Example:
        >>> attribute_sources({"ctc": "CTCLoss", ".distributed": "allgather=horovod_allgather"})
        {'CTCLoss': ('ctc', 'CTCLoss'), 'allgather': ('.distributed', 'horovod_allgather')}
    """
    words = ((module, word.partition("=")) for module, text in names.items() for word in text.split())
    return {name: (module, source_name or name) for module, (name, _, source_name) in words}


def refused(error: errors.MissingModuleError) -> AttributeError:
    """Returns the error for an attribute whose module is missing.

    `names.unsupported_names` raises the error for a module of Graphcore's that this package does not have. A module
    that needs another TensorFlow raises its own error.
    """
    is_ours = str(error.name).endswith("(emulated)")
    return AttributeError(str(error)) if is_ours else errors.MissingAttributeError(str(error))
