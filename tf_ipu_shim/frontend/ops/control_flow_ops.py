"""`tensorflow.python.ipu.ops.control_flow_ops`: barriers that order ops without a data dependency."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


def barrier(tensors: Any, insert_barrier_for_gradients: bool = False, name: Any = None) -> Any:
    """Computes all tensors before any of them is used.

    Args:
        tensors: a structure of tensors.
        insert_barrier_for_gradients: whether their gradients wait for each other too.
        name: the name of the op.

    Returns:
        The tensors, in the same structure.

    Source: `tensorflow.python.ipu.ops.control_flow_ops.barrier`.

    Example:
        >>> a, b = barrier([tf.constant(1.0), tf.constant(2.0)])
        >>> float(a), float(b)
        (1.0, 2.0)
    """
    flat = [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(tensors)]
    with tf.name_scope(name or "barrier"):
        if not insert_barrier_for_gradients:
            return tf.nest.pack_sequence_as(tensors, _join(flat))

        @tf.custom_gradient
        def with_gradient(*values: Any) -> Any:
            return _join(values), lambda *gradients: _join(gradients)

        return tf.nest.pack_sequence_as(tensors, list(with_gradient(*flat)))


def _join(values: Any) -> list[Any]:
    with tf.control_dependencies(list(values)):
        return [tf.identity(value) for value in values]
