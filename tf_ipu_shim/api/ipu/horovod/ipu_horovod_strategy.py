"""`tensorflow.python.ipu.horovod.ipu_horovod_strategy`: the older name of `distributed.ipu_horovod_strategy`."""

from tf_ipu_shim.api.ipu.distributed.ipu_horovod_strategy import (
    Average,
    IPUHorovodExtended,
    IPUHorovodExtendedV1,
    IPUHorovodStrategy,
    IPUHorovodStrategyV1,
    Sum,
    allreduce,
    broadcast,
    size,
)

__all__ = [
    "Average",
    "IPUHorovodExtended",
    "IPUHorovodExtendedV1",
    "IPUHorovodStrategy",
    "IPUHorovodStrategyV1",
    "Sum",
    "allreduce",
    "broadcast",
    "size",
]
