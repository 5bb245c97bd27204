"""Lazily loads submodules and names: `import ipu_tensorflow_addons` must not import Keras."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tf_ipu_shim import errors

Getattr = Callable[[str], Any]
Dir = Callable[[], list[str]]


def lazy(
    package: str, modules: Iterable[str] | Mapping[str, str] = (), names: Mapping[str, str] | None = None
) -> tuple[Getattr, Dir]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        modules: its modules that are attributes of it; if some are in packages below it, a mapping with the path of
            each.
        names: attributes that are names of its modules: which module each is in, `.module` for one in addition to the
            package.

    Example:
        >>> __getattr__, __dir__ = lazy(__name__, ["dropout"], {"Dropout": "dropout"})
    """
    paths = modules if isinstance(modules, Mapping) else {module: module for module in modules}
    module_of = names or {}

    def __getattr__(name: str) -> Any:
        if name not in paths and name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            attribute = importlib.import_module(f".{module_of.get(name) or paths[name]}", package)
        except errors.MissingModuleError as error:
            raise refused(error) from error
        if name in module_of:
            attribute = getattr(attribute, name)
        setattr(sys.modules[package], name, attribute)
        return attribute

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *paths, *module_of})

    return __getattr__, __dir__


def refused(error: errors.MissingModuleError) -> AttributeError:
    """Returns the error for an attribute whose module is missing.

    `names.unsupported_names` refuses a module that Graphcore has and this package has not, under its name. One
    that needs another TensorFlow has said so itself.
    """
    is_ours = str(error.name).endswith("(emulated)")
    return AttributeError(str(error)) if is_ours else errors.MissingAttributeError(str(error))
