"""Derives the `ipu.keras` models of SDK 1.2 to 2.1 from the Keras package of the layers that a script uses.

`tf.keras` is `keras` or `tf_keras`; TensorFlow has an older copy as `tensorflow.python.keras`. A model of one package
cannot contain layers of another.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2


def root_of_parts(parts: Any) -> str:
    """Returns the root of the Keras package of layers or Keras tensors.

    Example:
        >>> root_of_parts([tf.keras.layers.Dense(4)]) == keras2.root()
        True
    """
    for part in nest.flatten(parts):
        for kind in type(part).__mro__:
            for root in keras2.ROOTS:
                if kind.__module__ in (f"{root}.engine.base_layer", f"{root}.engine.keras_tensor"):
                    return root
    return keras2.root()


def class_over(methods: type, stock_name: str, name: str, root: str, module: str) -> Any:
    """Returns a model class."""
    place, _, kind = stock_name.partition(".")
    stock = getattr(keras2.module(f"engine.{place}", root), kind)
    return _combine(methods, stock, name, module)


@functools.cache
def _combine(methods: type, stock: type, name: str, module: str) -> Any:
    attributes = {"_ipu_generated": True, "__module__": module, "__qualname__": name, "__doc__": methods.__doc__}
    return type(stock)(name, (methods, stock), attributes)
