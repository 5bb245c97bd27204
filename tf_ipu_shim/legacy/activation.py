"""Activates the compatibility code that needs TensorFlow: Keras 2.6 behaviour on the installed Keras.

`frontend` loads it by name, before it changes Keras itself. `names.activation` has the names that must exist before
TensorFlow is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from tf_ipu_shim.frontend.keras import import_hook
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.legacy.keras_2_6 import internal_names, methods, names, optimizers
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.keras import one_keras
from tf_ipu_shim.legacy.names.tensorflow import stock_aliases

_MODULES = {
    *import_hook.PACKAGES,
    *import_hook.MODELS,
    *internal_names.PUBLIC,
    *internal_names.SPLIT,
    *names.INTERNAL,
    *optimizers.PUBLIC,
}


def install() -> None:
    """Changes the Keras packages that are loaded, now and later; calling it again changes nothing."""
    _finder.install("Keras 2.6", why="Keras has the names, methods and optimizers of 2.6 when a script imports it")
    mode.current()  # refuses an unknown value of its variable at once
    one_keras.install()
    for name in _MODULES:
        if name in sys.modules:
            _loaded(name, sys.modules[name])
    one_keras.exchange(optimizers.meant, "an optimizer that was imported before `ipu`")


def _loaded(name: str, module: Any) -> None:
    internal_names.loaded(name, module)
    if name in optimizers.PUBLIC:
        optimizers.loaded(module)
    elif name in names.INTERNAL:
        names.loaded(name, module)
    elif name in import_hook.PACKAGES:
        internal_names.root_loaded(module)
    elif name in import_hook.MODELS:
        stock_aliases.install_attributes()  # what the copy in TensorFlow misses of it
        methods.models_loaded(module)


_finder = post_import_hooks.PostImportFinder(_MODULES.__contains__, lambda module: _loaded(module.__name__, module))
