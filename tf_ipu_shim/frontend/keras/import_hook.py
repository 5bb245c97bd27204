"""Applies the `keras.ipu` patches when Keras is imported.

`tf.keras.ipu` is then there by attribute, and models ask for the strategy of their scope. It does not import Keras or
TensorFlow itself.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.frontend.keras import keras3
from tf_ipu_shim.frontend.keras.models import op_layers, option_transfer, preprocessing
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.names import finder

# Packages that have `ipu` as an attribute in Graphcore's Keras.
PACKAGES = (
    "keras",
    "keras.api._v1.keras",
    "keras.api._v2.keras",
    "tf_keras",
    "tf_keras.api._v1.keras",
    "tf_keras.api._v2.keras",
    "tensorflow.keras",  # a second copy, which `from tensorflow.keras import ...` makes
    "tensorflow.python.keras",
)
MODELS = tuple(
    f"{root}.engine.{module}"
    for root in ("keras.src", "tf_keras.src", "tensorflow.python.keras")
    for module in ("functional", "sequential", "training")
)
_NAMES = {
    *PACKAGES,
    *MODELS,
    *option_transfer.CLONING,
    *option_transfer.LOADING,
    *op_layers.MODULES,
    *preprocessing.MODULES,
    keras3.MODULE,
}


_finder = post_import_hooks.PostImportFinder(_NAMES.__contains__, lambda module: _patch_module(module.__name__, module))


def install() -> None:
    """Patches the loaded Keras packages, and others when they are loaded; a second call has no effect."""
    _finder.install("Keras", why="Keras is changed, as the rest of this list says, when a script imports it")
    for name in _NAMES:
        if name in sys.modules:
            _patch_module(name, sys.modules[name])


def _patch_module(name: str, module: Any) -> None:
    if name in option_transfer.CLONING or name in option_transfer.LOADING:
        option_transfer.patch_module(name, module)
    elif name in op_layers.MODULES:
        op_layers.patch_module(module)
    elif name in preprocessing.MODULES:
        preprocessing.patch_module(module)
    elif name in PACKAGES:
        if "ipu" not in vars(module):  # `legacy` gives packages a `__getattr__` that would find it
            ours = importlib.import_module(finder.ALIASES["keras.ipu"])
            patches.replace(module, "ipu", lambda _: ours, why="Graphcore's `keras.ipu`")
    elif name == keras3.MODULE:
        keras3.patch_module(module)
    elif name in MODELS:
        from tf_ipu_shim.frontend.keras.models import construction

        construction.install()
