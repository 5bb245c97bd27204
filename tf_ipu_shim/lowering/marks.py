"""The shard that a script gave an op, and the ops it sent to the host.

Graphcore's TensorFlow marks ops as the TPU's does: `_XlaSharding` holds a serialised `OpSharding`, maximal, with the
IPU as its only device. The marks steer this lowering alone; XLA is never shown them.
"""

from __future__ import annotations

import functools
from typing import Any

SHARDING_ATTRIBUTE = "_XlaSharding"
OUTSIDE_COMPILATION_ATTRIBUTE = "_xla_outside_compilation"
# Attributes that mean something to this lowering, or to a placer, only.
PRIVATE_ATTRIBUTES = (SHARDING_ATTRIBUTE, OUTSIDE_COMPILATION_ATTRIBUTE, "_class")

MAXIMAL = 1  # OpSharding.Type.MAXIMAL: the op is on one device


def shard_of(node: Any) -> int | None:
    """The IPU that a `NodeDef` is marked for; None where it is not marked, -1 where it is marked for all IPUs."""
    if SHARDING_ATTRIBUTE not in node.attr:
        return None
    return _device(node.attr[SHARDING_ATTRIBUTE].s)


def is_on_host(node: Any) -> bool:
    """Whether a script put the op outside the compiled program."""
    return OUTSIDE_COMPILATION_ATTRIBUTE in node.attr


@functools.lru_cache(maxsize=1024)
def _device(serialised: bytes) -> int | None:
    from tensorflow.compiler.xla import xla_data_pb2

    sharding = xla_data_pb2.OpSharding.FromString(serialised)
    if sharding.type != MAXIMAL or len(sharding.tile_assignment_devices) != 1:
        return None
    return int(sharding.tile_assignment_devices[0])
