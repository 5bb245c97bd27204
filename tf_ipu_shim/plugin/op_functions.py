"""Generates the Python wrappers of the plugin's ops."""

from __future__ import annotations

import types
from typing import Any

FILE = f"{__file__}: made by TensorFlow"
"""The file name in their code objects. `<string>` would be confused with a `python -c` script."""


def load_op_functions(path: str) -> Any:
    """Loads a library of ops.

    `tf_decorator.unwrap` checked on TensorFlow 2.15.1 and 2.21.0.
    """
    import tensorflow as tf

    from tf_ipu_shim.tf_private.functions import tf_decorator

    ops = tf.load_op_library(path)
    for value in list(vars(ops).values()):
        function = tf_decorator.unwrap(value)[1]
        if isinstance(function, types.FunctionType) and function.__code__.co_filename == "<string>":
            function.__code__ = function.__code__.replace(co_filename=FILE)
    return ops
