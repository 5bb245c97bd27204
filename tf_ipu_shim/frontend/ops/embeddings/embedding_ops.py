"""`tensorflow.python.ipu.ops.embedding_ops`: embedding tables on the IPU and on the host."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.embeddings.host_embedding import HostEmbedding as HostEmbedding
from tf_ipu_shim.frontend.ops.embeddings.host_embedding import HostEmbeddingOptimizerSpec as HostEmbeddingOptimizerSpec
from tf_ipu_shim.frontend.ops.embeddings.host_embedding import (
    HostEmbeddingSGDGAOptimizerSpec as HostEmbeddingSGDGAOptimizerSpec,
)
from tf_ipu_shim.frontend.ops.embeddings.host_embedding import create_host_embedding as create_host_embedding
from tf_ipu_shim.frontend.ops.serialization_factor import check_factor


def embedding_lookup(
    params: Any,
    ids: Any,
    serialization_factor: Any = 1,
    indices_are_sorted: Any = False,
    name: Any = None,
    one_hot_threshold: int = 0,
    min_encoding_size: int = 1216,
) -> tf.Tensor:
    """Rows of a table. Its gradient is dense, as IPU optimizers expect it.

    In TensorFlow 1 releases `name` is the third positional argument and `serialization_factor` the fourth. A string or
    None in the third position means that order.

    Args:
        params: shape [rows, ...]; the table.
        ids: integers of any shape; the rows.
        serialization_factor: the number of parts in which the table is read and updated. It divides the first
            dimension.
        indices_are_sorted: whether the ids are in ascending order; no effect.
        name: the name of the op.
        one_hot_threshold: no effect since SDK 1.2.
        min_encoding_size: no effect since SDK 1.2.

    Returns:
        Shape [*ids.shape, *params.shape[1:]].

    Raises:
        TypeError: the ids are not integers, or the factor is not a whole number.
        ValueError: it is below 1 or does not divide the table's first dimension, or there is no table.

    Source: `tensorflow.python.ipu.ops.embedding_ops.embedding_lookup`.

    Example:
        >>> table = tf.constant([[0.0, 1.0], [10.0, 11.0], [20.0, 21.0]])
        >>> embedding_lookup(table, [2, 0]).numpy().tolist()
        [[20.0, 21.0], [0.0, 1.0]]
    """
    if serialization_factor is None or isinstance(serialization_factor, str):
        name = serialization_factor or name
        serialization_factor = 1 if indices_are_sorted is False else indices_are_sorted
        indices_are_sorted = False
    note_arguments(
        "embedding_lookup",
        indices_are_sorted=indices_are_sorted,
        one_hot_threshold=one_hot_threshold,
        min_encoding_size=min_encoding_size,
    )
    table, rows = tf.convert_to_tensor(params), _row_indices(ids)
    serialization_factor = check_factor(serialization_factor)
    if not table.shape.rank:
        raise ValueError(
            f"embedding_lookup needs a table with rows, but params has the shape {table.shape}. Pass a "
            "tensor of rank 2."
        )
    if table.shape[0] % serialization_factor:
        raise ValueError(
            f"The serialization_factor ({serialization_factor}) must divide the size of the 0th dimension of params "
            f"({table.shape[0]}). Choose a divisor of this size."
        )

    @tf.custom_gradient
    def lookup(table: Any) -> Any:
        def backward(gradient: Any) -> Any:
            updates = tf.reshape(gradient, [-1, *table.shape[1:]])
            return tf.math.unsorted_segment_sum(updates, tf.reshape(rows, [-1]), table.shape[0])

        return tf.gather(table, rows), backward

    with tf.name_scope(name or "embedding_lookup"):
        return lookup(table)


def _row_indices(ids: Any) -> tf.Tensor:
    rows = tf.convert_to_tensor(ids)
    if not rows.dtype.is_integer:
        raise TypeError(
            f"embedding_lookup needs row numbers, and ids is a {rows.dtype.name}. Pass integers, or "
            "cast it: tf.cast(ids, tf.int32)."
        )
    is_supported = rows.dtype in (tf.int16, tf.int32, tf.int64)  # by tf.gather
    return rows if is_supported else tf.cast(rows, tf.int32 if rows.dtype.size < 4 else tf.int64)
