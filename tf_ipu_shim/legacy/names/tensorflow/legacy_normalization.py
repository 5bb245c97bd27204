"""Points `tensorflow.python.layers.normalization` at the installed Keras 2.

TensorFlow 2.15.1 and 2.21.0 load `tf_keras.legacy_tf_layers`: 2.15 has that in `keras`, and `tf_keras` of 2.21 below
another name.
"""

from __future__ import annotations

import types

from tf_ipu_shim import patches
from tf_ipu_shim.imports import post_import_hooks

_NAME = "tensorflow.python.layers.normalization"
_LAYERS = "legacy_tf_layers.normalization"
_WHY = "batch_norm of tensorflow.python.layers"


def install() -> None:
    """Makes the module find its layers, now or when it is loaded."""
    post_import_hooks.call_once_loaded(_NAME, _loaded, _WHY)


def _loaded(module: types.ModuleType) -> None:
    from tf_ipu_shim import keras2  # it asks the finders, which load this file

    stock = vars(module).get("normalization")
    root = next(filter(keras2.has_engine, keras2.ROOTS[:2]), None)
    if stock is None or root is None or type(stock) is types.ModuleType:
        return  # a plain module is what has been loaded already
    # It is loaded when it is first asked for something, and takes its place in the module then.
    module_class = type(stock)("normalization", vars(module), f"{root}.{_LAYERS}")
    patches.change(
        f"{_NAME}.normalization",
        lambda: setattr(module, "normalization", module_class),
        lambda: setattr(module, "normalization", stock),
        why=_WHY,
        undone="the stock attribute is restored",
    )
