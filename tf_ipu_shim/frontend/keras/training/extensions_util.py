"""`keras.ipu.extensions.extensions_util`: joins dequeued results of all mini-batches along the batch dimension."""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops


def merge_into_batch_dimension(tensors: Any, local_replication_factor: int) -> Any:
    """Concatenates the results of all mini-batches.

    Args:
        tensors: a structure of tensors of shape [mini-batch, replica, batch, ...]; without the replica axis if there is
            one replica.
        local_replication_factor: number of replicas.

    Returns:
        The same structure, of shape [mini-batch * replica * batch, ...].

    Source: `keras.ipu.extensions.extensions_util.merge_into_batch_dimension`.

    Example:
        >>> merge_into_batch_dimension(tf.zeros([4, 2, 8, 10]), 2).shape
        TensorShape([64, 10])
    """
    leading = 3 if local_replication_factor > 1 else 2

    def merge(tensor: Any) -> Any:
        rest = array_ops.shape(tensor)[leading:]
        return array_ops.reshape(tensor, array_ops.concat([[-1], rest], axis=0))

    with ops.device("/device:CPU:0"):  # where an outfeed's elements are; the scope's own device may compile only
        return nest.map_structure(merge, tensors)
