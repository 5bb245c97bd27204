"""Restores `initialized_value` of resource variables, which TensorFlow has removed since 2.6."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches


def install() -> None:
    """Restores `initialized_value` of resource variables, which initialisers of other variables use.

    TensorFlow is imported already. For variables of `tf.compat.v1.get_variable` with `use_resource=True`, stock
    TensorFlow raises NotImplementedError; 2.6 returned the value.
    """
    module = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    if module is not None:
        why = "variables of TensorFlow 1 have it, to initialise another variable"
        patches.replace(module.BaseResourceVariable, "initialized_value", _initialized_value, why)


def _initialized_value(stock: Any) -> Callable[[Any], Any]:
    def initialized_value(self: Any) -> Any:
        import tensorflow as tf

        with tf.init_scope():
            is_initialized = tf.compat.v1.is_variable_initialized(self)
            return tf.cond(is_initialized, self.read_value, lambda: self.initial_value)

    return initialized_value
