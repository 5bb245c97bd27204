"""`tensorflow.python.ipu.distributed.ipu_horovod_strategy`: strategy for one process of a Horovod job."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.ipu import ipu_multi_worker_strategy
from tf_ipu_shim.api.ipu.distributed import Average, Sum, allreduce, broadcast, size
from tf_ipu_shim.frontend.strategies import strategy_processes
from tf_ipu_shim.tf_private.distribute import device_util
from tf_ipu_shim.tf_private.graphs import ops

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


class IPUHorovodStrategyV1(strategy_processes.ProcessStrategy):
    """Trains on the IPUs of one process of a job; gradients are reduced over all processes on the host.

    Deprecated since SDK 3.0, in which `PopDistStrategy` replaces it.

    Args:
        ipu_device: the device that runs functions.
        variables_on_host: whether variables live on the host instead of the IPU.

    Raises:
        ValueError: `ipu.distributed.init()` was not called before.

    Source: `tensorflow.python.ipu.distributed.ipu_horovod_strategy.IPUHorovodStrategy`.

    Example:
        >>> ipu.distributed.init()
        >>> strategy = IPUHorovodStrategyV1()
    """

    def __init__(self, ipu_device: str = "/device:IPU:0", variables_on_host: bool = False) -> None:
        strategy_processes.warn_of_deprecation("IPUHorovodStrategy")
        size()  # refuses what has not joined the job
        super().__init__(IPUHorovodExtendedV1(self, None, ipu_device, variables_on_host))


class IPUHorovodExtendedV1(ipu_multi_worker_strategy.IPUMultiWorkerExtendedV1):
    """The class of `IPUHorovodStrategyV1.extended`.

    Args:
        container_strategy: the strategy.
        cluster_resolver: None: Horovod knows the processes.
        ipu_device: the device that runs functions.
        variables_on_host: whether variables live on the host instead of the IPU.

    Source: `tensorflow.python.ipu.distributed.ipu_horovod_strategy.IPUHorovodExtended`.

    Example:
        >>> IPUHorovodStrategyV1().extended.worker_devices
        ('/device:IPU:0',)
    """

    def __init__(
        self, container_strategy: Any, cluster_resolver: Any, ipu_device: str, variables_on_host: bool
    ) -> None:
        if not ops.executing_eagerly_outside_functions():  # the graph's names say which process, as Graphcore's do
            ipu_device = device_util.canonicalize(ipu_device, default="/replica:0/task:0")
        super().__init__(container_strategy, cluster_resolver, ipu_device, variables_on_host)


# Graphcore's names for the same up to SDK 2.1 and for TensorFlow 1.
IPUHorovodStrategy = IPUHorovodStrategyV1
IPUHorovodExtended = IPUHorovodExtendedV1
