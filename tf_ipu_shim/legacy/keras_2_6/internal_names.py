"""Restores internal Keras 2.6 names in the modules that had them.

Modules of Keras were public then: `keras.losses.losses_utils` is now only in `keras.src.losses`. In a process that uses
`ipu`, a public module of Keras that lacks a name looks into the internal module of the same name. A module that was
split looks into its parts, and `keras` has the packages that it loaded. Checked on `keras` 2.15.0, `tf_keras` 2.21.0.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.keras import keras_paths, one_keras

_ROOTS = ("keras", "tf_keras")
_APPLICATIONS = (
    "densenet efficientnet imagenet_utils inception_resnet_v2 inception_v3 mobilenet mobilenet_v2 mobilenet_v3 nasnet "
    "resnet resnet_v2 vgg16 vgg19 xception"
)
_PARTS = (
    *"activations backend callbacks constraints estimator initializers layers losses metrics mixed_precision".split(),
    *"models preprocessing.image preprocessing.sequence regularizers saving utils".split(),
    *(f"applications.{name}" for name in _APPLICATIONS.split()),
)
# Public modules that look into internal ones: `tf.keras.losses` is a module of `keras.api`.
PUBLIC = {
    f"{root}{api}.{part}": f"{root}.src.{part}"
    for root in _ROOTS
    for api in ("", ".api._v1.keras", ".api._v2.keras")
    for part in _PARTS
}
# Internal modules of which a part became a separate module.
SPLIT = {f"{root}.src.{part}": (f"{root}.src.", part) for root in _ROOTS for part in keras_paths.BESIDE}
_EXPERIMENTAL = "mixed_precision.experimental"


def root_loaded(module: Any) -> None:
    """Adds to Keras' own package the packages that it loaded then, such as `keras.engine`."""
    if module.__name__ in _ROOTS and "__getattr__" not in vars(module):
        patches.replace(module, "__getattr__", lambda _: _package, why="packages that it no longer loads")


def loaded(name: str, module: Any) -> None:
    """Makes a loaded module of `PUBLIC` or `SPLIT` look for names that it lacks."""
    if "__getattr__" in vars(module):
        return
    if name in PUBLIC:
        looks_into = _looks_into(module, PUBLIC[name])
        patches.replace(module, "__getattr__", lambda _: looks_into, why="names that are internal now")
    elif name in SPLIT:
        beside = _with_split_module(module, *SPLIT[name])
        patches.replace(module, "__getattr__", lambda _: beside, why="names that moved to separate modules")


def _looks_into(module: Any, internal: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if not name.startswith("__") and internal.startswith(_ROOTS):
            path = f"{internal.partition('.src.')[2]}.{name}"
            if path == _EXPERIMENTAL and mode.is_requested():
                return importlib.import_module("tf_ipu_shim.legacy.keras_2_6.mixed_precision")
            if keras_paths.is_moved(path) and mode.is_requested():
                return importlib.import_module(f"{one_keras.NAME}.{path}")
            has_spec = importlib.util.find_spec(internal) is not None
            internal_module = importlib.import_module(internal) if has_spec else None  # in Keras 3
            if hasattr(internal_module, name):
                return getattr(internal_module, name)
            if hasattr(internal_module, "__path__") and importlib.util.find_spec(f"{internal}.{name}") is not None:
                return importlib.import_module(f"{internal}.{name}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return __getattr__


def _package(name: str) -> Any:
    """Returns a loaded package of `import keras`, such as `keras.engine`, without loading more."""
    if not name.startswith("_") and mode.is_requested() and importlib.util.find_spec(f"keras.{name}") is not None:
        return importlib.import_module(f"keras.{name}")
    raise AttributeError(f"module 'keras' has no attribute {name!r}")


def _with_split_module(module: Any, root: str, path: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if not name.startswith("__") and mode.is_requested():
            for beside in keras_paths.BESIDE[path].split():
                spec = importlib.util.find_spec(root + beside)  # None in Keras 3
                split_module = importlib.import_module(root + beside) if spec is not None else None
                if hasattr(split_module, name):
                    return getattr(split_module, name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return __getattr__
