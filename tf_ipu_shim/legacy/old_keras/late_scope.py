"""Moves `ipu.keras` models of SDK 1.2 to 2.1 to the IPU if they were created outside the scope that runs them.

Uses `_handle` and `_distribute_strategy` of `ResourceVariable`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.tf_private import variables as tf_variables


def bring_to_ipu(model: Any) -> None:
    """Allocates variables made outside the current scope on this scope's device.

    Layers, optimizers and checkpoints keep the same variable objects.
    """
    for variable in _variables(model):
        if tf.executing_eagerly() and tf_variables.strategy_of(variable, variable) is None:
            fresh = tf.Variable(variable.numpy(), trainable=variable.trainable, dtype=variable.dtype)
            tf_variables.take_resource_of(variable, fresh)


def _variables(model: Any) -> Iterator[Any]:
    yield from model.weights
    optimizer = getattr(model, "optimizer", None)
    variables = getattr(optimizer, "variables", ())
    yield from variables() if callable(variables) else variables
