"""`popdist`: queries about the instances that `poprun` started.

Without `poprun` there is one instance with one replica. `python -m tf_ipu_shim.cli poprun` replaces Graphcore's
`poprun` command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from tf_ipu_shim.runtime.jobs import collectives, instances

__all__ = [
    "checkNumIpusPerReplica",
    "execute_on_instances",
    "finalizeBackend",
    "getDeviceId",
    "getInstanceIndex",
    "getLocalInstanceIndex",
    "getNumInstances",
    "getNumIpusPerReplica",
    "getNumLocalReplicas",
    "getNumTotalReplicas",
    "getReplicaIndexOffset",
    "init",
    "initializeBackend",
    "isBackendInitialized",
    "isPopdistEnvSet",
    "synchronize",
]


def init() -> None:
    """Checks that this process has a place in the job.

    Raises:
        ValueError: its environment contradicts itself.

    Source: `popdist.init`.

    Example:
        >>> init()
    """
    instances.current()


def isPopdistEnvSet() -> bool:  # noqa: N802
    """Returns whether `poprun` started this process.

    Source: `popdist.isPopdistEnvSet`.

    Example:
        >>> isPopdistEnvSet()
        False
    """
    return instances.from_launcher()


def getNumInstances() -> int:  # noqa: N802
    """Returns the number of processes of the job, by which a dataset is sharded.

    Source: `popdist.getNumInstances`.

    Example:
        >>> getNumInstances()
        1
    """
    return instances.current().instances


def getInstanceIndex() -> int:  # noqa: N802
    """Returns the number of this process, from 0.

    Source: `popdist.getInstanceIndex`.

    Example:
        >>> getInstanceIndex()
        0
    """
    return instances.current().index


def getNumTotalReplicas() -> int:  # noqa: N802
    """Returns the replicas of all instances together.

    Source: `popdist.getNumTotalReplicas`.

    Example:
        >>> getNumTotalReplicas()
        1
    """
    return instances.current().total_replicas


def getNumLocalReplicas() -> int:  # noqa: N802
    """Returns the replicas of this instance.

    Source: `popdist.getNumLocalReplicas`.

    Example:
        >>> getNumLocalReplicas()
        1
    """
    return instances.current().local_replicas


def getReplicaIndexOffset() -> int:  # noqa: N802
    """Returns the index of this instance's first replica among the replicas of all instances.

    Source: `popdist.getReplicaIndexOffset`.

    Example:
        >>> getReplicaIndexOffset()
        0
    """
    instance = instances.current()
    return instance.index * instance.local_replicas


def getNumIpusPerReplica() -> int:  # noqa: N802
    """Returns how many IPUs each replica has.

    Source: `popdist.getNumIpusPerReplica`.

    Example:
        >>> getNumIpusPerReplica()
        1
    """
    return instances.current().ipus_per_replica


def getLocalInstanceIndex() -> int:  # noqa: N802
    """Returns the index of this process among the processes on its machine, from 0.

    Source: `popdist.getLocalInstanceIndex`.

    Example:
        >>> getLocalInstanceIndex()
        0
    """
    return instances.current().local_index


def checkNumIpusPerReplica(ipusPerReplica: int) -> bool:  # noqa: N802, N803
    """Returns whether each replica has as many IPUs as a script needs.

    Args:
        ipusPerReplica: the IPUs that it needs.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below 1.

    Source: `popdist.checkNumIpusPerReplica`.

    Example:
        >>> checkNumIpusPerReplica(1), checkNumIpusPerReplica(2)
        (True, False)
    """
    instance = instances.current()
    return instances.checked_ipus_per_replica(ipusPerReplica, instance) == instance.ipus_per_replica


def getDeviceId(ipusPerReplica: int = 0) -> int:  # noqa: N802, N803
    """Returns the Poplar device for this instance's replicas; it shares no IPU with other instances.

    Args:
        ipusPerReplica: the number of IPUs of each replica; 0 for `poprun`'s own number.

    Raises:
        TypeError: `ipusPerReplica` is not an integer.
        ValueError: it is below 0, or the simulated system has not enough IPUs for all instances.

    Source: `popdist.getDeviceId`.

    Example:
        >>> getDeviceId(ipusPerReplica=1)
        0
    """
    instance = instances.current()
    requested_ipus = None if isinstance(ipusPerReplica, int) and ipusPerReplica == 0 else ipusPerReplica
    return instances.device_id(
        instance, instance.local_replicas * instances.checked_ipus_per_replica(requested_ipus, instance)
    )


def execute_on_instances(instances: Collection[int], func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function in some of the instances; collectives in it wait only for these.

    Args:
        instances: their indices. If they are several but not all, the function must not call collectives.
        func: the function.
        *args: its arguments.
        **kwargs: its keyword arguments.

    Returns:
        The function's result; None in the other instances.

    Raises:
        ValueError: the instance does not exist.

    Source: `popdist.execute_on_instances`.

    Example:
        >>> execute_on_instances({0}, len, [1, 2])
        2
    """
    chosen, count = {int(instance) for instance in instances}, getNumInstances()
    if not chosen <= set(range(count)):
        raise ValueError(
            f"execute_on_instances: instances are from 0 to {count - 1}, not {sorted(chosen)}. Pass ranks in this "
            "range."
        )
    if getInstanceIndex() not in chosen:
        return None
    with collectives.among(chosen):
        return func(*args, **kwargs)


def initializeBackend() -> None:  # noqa: N802
    """As `init`: instances need no additional library to communicate.

    Source: `popdist.initializeBackend`.

    Example:
        >>> initializeBackend()
    """
    init()


def isBackendInitialized() -> bool:  # noqa: N802
    """Returns whether instances can exchange data: always, because they connect at the first exchange.

    Source: `popdist.isBackendInitialized`.

    Example:
        >>> isBackendInitialized()
        True
    """
    return True


def finalizeBackend() -> None:  # noqa: N802
    """Waits until all instances have called it; connections close when the process ends.

    Source: `popdist.finalizeBackend`.

    Example:
        >>> finalizeBackend()
    """
    synchronize()


def synchronize() -> None:
    """Waits until all instances have called it.

    Raises:
        CollectiveError: one of them has ended.

    Source: `popdist.synchronize`.

    Example:
        >>> synchronize()
    """
    collectives.run("sum", "popdist.synchronize", [np.zeros([], np.int32)])
