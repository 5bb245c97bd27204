"""Finds modules and attributes of TensorFlow 1.15 to 2.6 that stock TensorFlow has moved.

Modules are found only if the installed TensorFlow lacks that name. Attributes are added only to modules that lack them,
when `ipu` is first imported or the runner's script imports TensorFlow. `stock_moves` has the tables.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.python import removed_functions, removed_names, yaml_loader
from tf_ipu_shim.legacy.names.tensorflow import (
    collective_keys,
    command_arguments,
    dataset_statistics,
    dimensions,
    half_batch_norm,
    legacy_normalization,
    stock_moves,
)


def find(fullname: str) -> str | None:
    """Returns the current location of the module `fullname`, or None if it is not in the tables.

    Example:
        >>> find("tensorflow.python.dtypes")
        'tensorflow.python.framework.dtypes'
    """
    package, _, name = fullname.rpartition(".")
    if package == "tensorflow.python":
        for holder, names in stock_moves.TOP_LEVEL.items():
            if name in names.split():
                return f"tensorflow.python.{holder}.{name}"
    for old, new in stock_moves.MODULES.items():
        if fullname == old or fullname.startswith(old + "."):
            return new + fullname[len(old) :]
    return None


def install_with_tensorflow() -> None:
    """Works like `install_attributes`, before the script imports TensorFlow: it may never import `ipu`."""
    if "tensorflow" in sys.modules:
        install_attributes()
    else:
        _with_tensorflow.install(
            "names that have moved", why="scripts of `tf-ipu run` have them from the first line on"
        )


def install_attributes() -> None:
    """Makes the attributes that left TensorFlow's modules reachable there again, each looked up when asked for.

    TensorFlow is imported already: `import tensorflow` loads all modules of the table.
    """
    for module_name, attributes in stock_moves.ATTRIBUTES.items():
        module = sys.modules.get(f"tensorflow.python.{module_name}")
        if module is not None and "__getattr__" not in module.__dict__:
            _add_getattr(module, attributes)

    if mode.is_requested():
        _add_python()
        _add_mixed_precision()
        _add_contrib()
        collective_keys.install()
        command_arguments.install()
        dataset_statistics.install()
        dimensions.install()
        half_batch_norm.install()
        legacy_normalization.install()
        removed_names.install()
        removed_functions.install()
        yaml_loader.install()


_with_tensorflow = post_import_hooks.PostImportFinder("tensorflow".__eq__, lambda _: install_attributes())


def _add_python() -> None:
    """Restores `tf.python`, which TensorFlow deletes from its module, and `tf.python.keras`."""
    tensorflow = sys.modules.get("tensorflow")
    if type(tensorflow) is types.ModuleType and "python" not in vars(tensorflow):
        patches.replace(tensorflow, "python", lambda _: sys.modules["tensorflow.python"], why="`tf.python.ipu`")
    python = sys.modules.get("tensorflow.python")
    if python is not None and "__getattr__" not in vars(python):
        patches.replace(python, "__getattr__", lambda _: _python_getattr, why="`tf.python.keras` before it is imported")


def _python_getattr(name: str) -> Any:
    if name == "keras":
        return importlib.import_module("tensorflow.python.keras")
    raise AttributeError(f"module 'tensorflow.python' has no attribute {name!r}")


def _add_mixed_precision() -> None:
    """`tf.mixed_precision`, and its other attributes; all of them are now only in `compat.v1`."""
    tensorflow = sys.modules.get("tensorflow")
    if type(tensorflow) is not types.ModuleType or "mixed_precision" in vars(tensorflow):
        return
    why = "loss scales of TensorFlow 2.1 to 2.6"
    patches.replace(tensorflow, "mixed_precision", lambda _: tensorflow.compat.v1.mixed_precision, why=why)
    for name in stock_moves.LOSS_SCALING:
        scaling = getattr(tensorflow.compat.v1.train.experimental, name)
        patches.replace(tensorflow.train.experimental, name, functools.partial(_instead, scaling), why=why)


def _instead(moved: Any, stock: Any) -> Any:
    del stock
    return moved


def _add_contrib() -> None:
    """`tf.contrib` for scripts of TensorFlow 1.15 whose `tf` is `tensorflow.compat.v1`, loaded when they ask for it."""
    from tf_ipu_shim import tf_private

    compat = getattr(sys.modules.get("tensorflow"), "compat", None)
    v1 = getattr(compat, "v1", None)
    module = tf_private.unwrapped(v1)
    if module is not None and "__getattr__" not in vars(module):
        why = "`tf.contrib` of scripts that import compat.v1"
        patches.replace(module, "__getattr__", lambda _: _contrib_getattr(module), why)


def _contrib_getattr(module: types.ModuleType) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name == "contrib":
            return importlib.import_module("tensorflow.contrib")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return __getattr__


def _add_getattr(module: types.ModuleType, attributes: dict[str, str]) -> None:
    why = f"names that have moved: {', '.join(f'`{name}`' for name in attributes)}"
    patches.replace(module, "__getattr__", lambda _: _moved_getattr(module, attributes), why)


def _moved_getattr(module: types.ModuleType, attributes: dict[str, str]) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name not in attributes:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        holder, _, attribute = attributes[name].rpartition(".")
        return getattr(importlib.import_module(f"tensorflow.python.{holder}"), attribute)

    return __getattr__
