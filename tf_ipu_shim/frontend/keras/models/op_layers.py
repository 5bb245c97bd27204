"""Makes Keras find Graphcore's ops by name when it clones or loads a model that has them as layers.

Checked on `keras` 2.15.0, `tf_keras` 2.21.0 and `tensorflow.python.keras` of TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import keras2, patches
from tf_ipu_shim.names import keras_ops

_PLACES = {"tensorflow.python.keras": "layers.core"}
MODULES = tuple(f"{root}.{_PLACES.get(root, 'layers.core.tf_op_layer')}" for root in keras2.ROOTS)


def patch_module(module: Any) -> None:
    """Changes a module of `MODULES` that has been loaded."""
    why = "layers of Graphcore's ops are read from configurations"
    patches.replace(module, "get_symbol_from_name", _patch_get_symbol, why=why)


def _patch_get_symbol(stock: Callable[[str], Any]) -> Callable[[str], Any]:
    @functools.wraps(stock)
    def get_symbol_from_name(name: str) -> Any:
        return stock(name) or keras_ops.find_op(name)

    return get_symbol_from_name
