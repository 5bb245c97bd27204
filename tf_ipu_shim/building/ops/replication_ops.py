"""`tensorflow.python.ipu.ops.replication_ops`: which replica this is."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import plugin


def replication_index(name: str | None = None) -> Any:
    """The number of the replica, from 0 up; 0 in a program with one replica.

    Args:
        name: of the operation.

    Returns:
        An int32 scalar.

    Source: `tensorflow.python.ipu.ops.replication_ops.replication_index`.

    Example:
        >>> shard_of_data = table[replication_index()]
    """
    return plugin.load().ops.replication_index(name=name)
