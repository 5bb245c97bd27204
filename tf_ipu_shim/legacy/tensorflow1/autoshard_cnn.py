"""`tensorflow.python.ipu.autoshard_cnn` of SDK 2.0 and older: the same as `autoshard`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.legacy.tensorflow1 import autoshard


def automatic_sharding(
    num_shards: int,
    input_ts: Any,
    output_ts: Any,
    edge_filter: Callable[[tuple[str, str]], bool] | None = None,
    frozen_inference: bool = False,
) -> None:
    """Marks all ops on the IPU for shards; see `autoshard.automatic_sharding`.

    Args:
        num_shards: number of IPUs.
        input_ts: the tensor closest to the input data.
        output_ts: the tensor closest to the loss.
        edge_filter: receives the names of an edge's two ops; returns True if the edge must not be cut.
        frozen_inference: whether weights are constants.

    Raises:
        ValueError: no op is on an IPU.
        RuntimeError: the output does not depend on the input.
        Exception: there are fewer places to cut than are needed.

    Source: `tensorflow.python.ipu.autoshard_cnn.automatic_sharding`.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     images = tf.compat.v1.placeholder(tf.float32, [1, 8, 8, 3])
        ...     hidden = tf.nn.relu(tf.nn.conv2d(images, tf.ones([3, 3, 3, 4]), 1, "SAME"))
        ...     loss = tf.reduce_sum(tf.nn.conv2d(hidden, tf.ones([3, 3, 4, 4]), 1, "SAME"))
        ...     automatic_sharding(2, images, loss)
        ...     ipu.sharding.get_sharding(loss.op)
        [1]
    """
    autoshard.automatic_sharding(num_shards, input_ts, output_ts, edge_filter, frozen_inference)
