"""`tensorflow.python.ipu.horovod.popdist_strategy`: the older name of `distributed.popdist_strategy`."""

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

__all__ = [
    "Average",
    "IPUMultiReplicaStrategy",
    "IPUMultiReplicaStrategyV1",
    "PopDistExtendedV1",
    "PopDistStrategy",
    "Sum",
    "hvd_allreduce",
    "hvd_broadcast",
    "rank",
    "size",
]
