"""`tensorflow.python.ipu.ops.replication_ops`: the index of the running replica."""

from tf_ipu_shim.frontend.ops.collectives.replication_ops import replication_index

__all__ = [
    "replication_index",
]
