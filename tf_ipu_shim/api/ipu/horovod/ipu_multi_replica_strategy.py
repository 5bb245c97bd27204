"""`tensorflow.python.ipu.horovod.ipu_multi_replica_strategy`: the name of `PopDistStrategy` up to SDK 2.3."""

from tf_ipu_shim.api.ipu.distributed.popdist_strategy import (
    Average,
    PopDistExtendedV1,
    PopDistStrategy,
    Sum,
    hvd_allreduce,
    hvd_broadcast,
    rank,
    size,
)

IPUMultiReplicaStrategy = IPUMultiReplicaStrategyV1 = PopDistStrategy
IPUMultiReplicaExtended = IPUMultiReplicaExtendedV1 = PopDistExtendedV1

__all__ = [
    "Average",
    "IPUMultiReplicaExtended",
    "IPUMultiReplicaExtendedV1",
    "IPUMultiReplicaStrategy",
    "IPUMultiReplicaStrategyV1",
    "Sum",
    "hvd_allreduce",
    "hvd_broadcast",
    "rank",
    "size",
]
