"""Keras is loaded late, if at all: what `keras.ipu` changes of it is done when it is.

`tf.keras.ipu` is then there by attribute, and models ask for the strategy of their scope. Imports nothing of Keras or
TensorFlow by itself.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.building.keras import (
    internal_names,
    kept_options,
    keras3,
    methods_of_the_time,
    names_of_the_time,
    op_layers,
    optimizers_of_the_time,
)
from tf_ipu_shim.imports import after_loading
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.keras import one_keras
from tf_ipu_shim.legacy.names.tensorflow import stock_aliases
from tf_ipu_shim.names import finder

# Packages that have `ipu` as an attribute in Graphcore's Keras.
_PACKAGES = (
    "keras",
    "keras.api._v1.keras",
    "keras.api._v2.keras",
    "tf_keras",
    "tf_keras.api._v1.keras",
    "tf_keras.api._v2.keras",
    "tensorflow.keras",  # a second copy, which `from tensorflow.keras import ...` makes
    "tensorflow.python.keras",
)
_MODELS = tuple(
    f"{root}.engine.{module}"
    for root in ("keras.src", "tf_keras.src", "tensorflow.python.keras")
    for module in ("functional", "sequential", "training")
)
_NAMES = {
    *_PACKAGES,
    *_MODELS,
    *kept_options.CLONING,
    *kept_options.LOADING,
    *internal_names.PUBLIC,
    *internal_names.SPLIT,
    *names_of_the_time.INTERNAL,
    *op_layers.MODULES,
    *optimizers_of_the_time.PUBLIC,
    keras3.MODULE,
}


_finder = after_loading.Finder(_NAMES.__contains__, lambda module: _loaded(module.__name__, module))


def install() -> None:
    """Changes the Keras packages that are loaded, and those that will be; calling it again changes nothing."""
    _finder.install("Keras", why="Keras is changed, as the rest of this list says, when a script imports it")
    mode.OPTIMIZERS.is_on()  # refuses a wrong value of its variable at once
    one_keras.install()
    for name in _NAMES:
        if name in sys.modules:
            _loaded(name, sys.modules[name])
    one_keras.exchange(optimizers_of_the_time.meant, "an optimizer that was imported before `ipu`")


def _loaded(name: str, module: Any) -> None:
    internal_names.loaded(name, module)
    if name in optimizers_of_the_time.PUBLIC:
        optimizers_of_the_time.loaded(module)
    elif name in names_of_the_time.INTERNAL:
        names_of_the_time.loaded(name, module)
    elif name in kept_options.CLONING or name in kept_options.LOADING:
        kept_options.loaded(name, module)
    elif name in op_layers.MODULES:
        op_layers.loaded(module)
    elif name in _PACKAGES:
        if not hasattr(module, "ipu"):
            ours = importlib.import_module(finder.ALIASES["keras.ipu"])
            patches.replace(module, "ipu", lambda _: ours, why="Graphcore's `keras.ipu`")
        internal_names.root_loaded(module)
    elif name == keras3.MODULE:
        keras3.loaded(module)
    elif name in _MODELS:
        from tf_ipu_shim.building.keras import construction

        stock_aliases.install_attributes()  # what the copy in TensorFlow misses of it
        construction.install()
        methods_of_the_time.models_loaded(module)
