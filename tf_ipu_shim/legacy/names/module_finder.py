"""Finds modules under the names that they had in TensorFlow 1.15 to 2.6."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec

from tf_ipu_shim import errors
from tf_ipu_shim.imports import aliases, import_callers, post_import_hooks
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.contrib import contrib_ipu, loader
from tf_ipu_shim.legacy.names.keras import keras_modules, keras_paths
from tf_ipu_shim.legacy.names.tensorflow import stock_aliases

# A script that imports this package of Keras 2.6 means its optimizers by `tf.keras.optimizers`, as with `ipu`.
_OPTIMIZERS = "optimizer_v2"


def find(fullname: str, is_for_ipus: Callable[[], bool]) -> ModuleSpec | None:
    """Returns the spec of a module that has moved since, of Keras 2.6, or of `tensorflow.contrib`; None for others."""
    return find_moved(fullname) or _find_in_keras(fullname) or find_in_contrib(fullname, is_for_ipus)


def find_moved(fullname: str) -> ModuleSpec | None:
    """Returns the spec of a module that stock TensorFlow has under another name."""
    moved = stock_aliases.find(fullname)
    target = aliases.find_alias_spec(moved) if moved else None
    return aliases.make_alias_spec(fullname, target) if target else None


def find_in_contrib(fullname: str, is_for_ipus: Callable[[], bool]) -> ModuleSpec | None:
    """Returns the spec of a module of `tensorflow.contrib`, in a process that uses IPUs."""
    if not fullname.startswith(loader.NAME) or not is_for_ipus():
        return None
    moved = contrib_ipu.find(fullname) or loader.moved(fullname)
    if moved is not None:
        target = aliases.find_alias_spec(moved)
        return aliases.make_alias_spec(fullname, target) if target else None
    spec = loader.spec(fullname)
    if spec is not None:
        aliases.served.append(fullname)
    elif import_callers.is_module_imported():
        raise errors.MissingModuleError(loader.absence(fullname[len(loader.NAME) + 1 :]), name=fullname)
    return spec


def _find_in_keras(fullname: str) -> ModuleSpec | None:
    """Returns a module that Keras of TensorFlow 2.6 and before had under this name. Keras 3 has other modules."""
    package, _, path = fullname.partition(".")
    # `from keras import NAME` asks for `tf_keras.NAME` where `keras` is that.
    is_keras = package == "keras" or (package == "tf_keras" and sys.modules.get("keras") is sys.modules.get(package))
    if not is_keras or not path or path.partition(".")[0] in ("src", "api"):
        return None
    if not keras_modules.is_keras_2() and not keras_paths.is_moved(path) and path.partition(".")[0] != "engine":
        return None
    spec = keras_modules.spec(fullname, path)
    if spec is not None:
        aliases.served.append(fullname)
        if path.partition(".")[0] == _OPTIMIZERS and not mode.active() and import_callers.is_imported_by_script():
            post_import_hooks.call_after_loading(spec.loader, _use_ipu)
    return spec


def _use_ipu(module: types.ModuleType) -> None:
    del module
    importlib.import_module("tf_ipu_shim.api.ipu")
