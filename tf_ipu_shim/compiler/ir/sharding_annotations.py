"""Reads and writes the sharding annotation of an op: the shard or the host that a script assigned to it.

Graphcore's TensorFlow marks ops as the TPU's does: `_XlaSharding` holds a serialised `OpSharding`, maximal, with the
IPU as its only device. The annotations only steer this lowering; XLA never sees them.
"""

from __future__ import annotations

import functools
from typing import Any

from tf_ipu_shim.compiler.ir.location import ALL_IPUS, Location, on_shard
from tf_ipu_shim.compiler.ir.vocabulary import OUTSIDE_COMPILATION_ATTRIBUTE, SHARDING_ATTRIBUTE
from tf_ipu_shim.machine.ids import Shard

_MAXIMAL = 1  # OpSharding.Type.MAXIMAL: the op is on one device
_ALL_SHARDS = -1  # the device that `ipu_shard(-1)` writes


def shard_of(node: Any) -> Location | None:
    """Returns the shard that a NodeDef is annotated with, or `ALL_IPUS`; None without annotation."""
    if SHARDING_ATTRIBUTE not in node.attr:
        return None
    return _location(node.attr[SHARDING_ATTRIBUTE].s)


def is_on_host(node: Any) -> bool:
    """Returns whether a script placed the op outside the compiled program."""
    return OUTSIDE_COMPILATION_ATTRIBUTE in node.attr


@functools.lru_cache(maxsize=1024)
def _location(serialised: bytes) -> Location | None:
    from tf_ipu_shim.tf_private.protos import xla_data_pb2

    sharding = xla_data_pb2.OpSharding.FromString(serialised)
    if sharding.type != _MAXIMAL or len(sharding.tile_assignment_devices) != 1:
        return None
    shard = int(sharding.tile_assignment_devices[0])
    return ALL_IPUS if shard == _ALL_SHARDS else on_shard(Shard(shard))


def sharding_annotation(shard: int) -> bytes:
    """Returns the annotation for a shard, or for all by -1: the value of `vocabulary.SHARDING_ATTRIBUTE`."""
    from tf_ipu_shim.tf_private.protos import xla_data_pb2

    sharding = xla_data_pb2.OpSharding(type=_MAXIMAL, tile_assignment_devices=[shard])
    return bytes(sharding.SerializeToString(deterministic=True))
