"""The base class of IPU Keras layers, and the arguments of older SDKs that their constructors accept."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2


class IPULayer(keras2.public_module().layers.Layer):  # type: ignore[misc]
    """A Keras layer made for IPUs.

    Source: `ipu_tensorflow_addons.keras.layers.ipu_layer.IPULayer`.

    Example:
        >>> class Double(IPULayer):
        ...     def call(self, inputs):
        ...         return 2 * inputs
    """


def accepts_leading_dtype(layer: type) -> type:
    """Lets a layer's constructor accept the data type first, as in the SDKs for TensorFlow 1 and before 2.3.

    Example:
        >>> @accepts_leading_dtype
        ... class Halved(IPULayer):
        ...     pass
        >>> Halved(tf.float16).dtype
        'float16'
    """
    stock_init = layer.__init__  # type: ignore[misc]

    @functools.wraps(stock_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[0], (tf.DType, type)):
            kwargs["dtype"], args = args[0], args[1:]
        stock_init(self, *args, **kwargs)

    layer.__init__ = __init__  # type: ignore[misc]
    return layer
