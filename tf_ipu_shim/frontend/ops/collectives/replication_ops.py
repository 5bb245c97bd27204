"""`tensorflow.python.ipu.ops.replication_ops`: the index of the running replica."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import plugin


def replication_index(name: str | None = None) -> Any:
    """Returns the number of the replica, from 0 up; 0 in a program with one replica.

    Args:
        name: the name of the operation.

    Returns:
        An int32 scalar.

    Source: `tensorflow.python.ipu.ops.replication_ops.replication_index`.

    Example:
        >>> step = tf.function(lambda: ipu.ops.all_to_all_op.all_gather(replication_index(), replication_factor=2))
        >>> strategy.run(step).numpy().tolist()  # on a device of two IPUs: two replicas
        [0, 1]
    """
    return plugin.load().ops.replication_index(name=name)
