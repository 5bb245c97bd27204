"""`tensorflow.python.ipu.sharding`: reads and propagates sharding annotations."""

from tf_ipu_shim.frontend.sharding.sharding import (
    dependencies,
    enable_sharded_gradient_tape,
    get_shard_from_colocation,
    get_sharding,
    has_attr,
    propagate_sharding,
)

__all__ = [
    "dependencies",
    "enable_sharded_gradient_tape",
    "get_shard_from_colocation",
    "get_sharding",
    "has_attr",
    "propagate_sharding",
]
