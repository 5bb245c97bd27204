"""`popdist`: what a script asks about the instances that `poprun` started.

Without `poprun` there is one instance with one replica. `python -m tf_ipu_shim.cli poprun` is here what Graphcore's
`poprun` command is.
"""

from __future__ import annotations

import numpy as np

from tf_ipu_shim.runtime import collectives, instances

__all__ = [
    "getDeviceId",
    "getInstanceIndex",
    "getNumInstances",
    "getNumIpusPerReplica",
    "getNumLocalReplicas",
    "getNumTotalReplicas",
    "getReplicaIndexOffset",
    "init",
    "isPopdistEnvSet",
    "synchronize",
]


def init() -> None:
    """Checks that this process knows its place in the job.

    Raises:
        ValueError: its environment contradicts itself.

    Source: `popdist.init`.

    Example:
        >>> init()
    """
    instances.current()


def isPopdistEnvSet() -> bool:  # noqa: N802
    """Whether `poprun` started this process.

    Source: `popdist.isPopdistEnvSet`.

    Example:
        >>> isPopdistEnvSet()
        False
    """
    return instances.from_launcher()


def getNumInstances() -> int:  # noqa: N802
    """The number of processes of the job: what a dataset is sharded by.

    Source: `popdist.getNumInstances`.

    Example:
        >>> getNumInstances()
        1
    """
    return instances.current().instances


def getInstanceIndex() -> int:  # noqa: N802
    """The number of this process, from 0.

    Source: `popdist.getInstanceIndex`.

    Example:
        >>> getInstanceIndex()
        0
    """
    return instances.current().index


def getNumTotalReplicas() -> int:  # noqa: N802
    """The replicas of all instances together.

    Source: `popdist.getNumTotalReplicas`.

    Example:
        >>> getNumTotalReplicas()
        1
    """
    return instances.current().total_replicas


def getNumLocalReplicas() -> int:  # noqa: N802
    """The replicas of this instance.

    Source: `popdist.getNumLocalReplicas`.

    Example:
        >>> getNumLocalReplicas()
        1
    """
    return instances.current().local_replicas


def getReplicaIndexOffset() -> int:  # noqa: N802
    """The number, among those of all instances, of this instance's first replica.

    Source: `popdist.getReplicaIndexOffset`.

    Example:
        >>> getReplicaIndexOffset()
        0
    """
    here = instances.current()
    return here.index * here.local_replicas


def getNumIpusPerReplica() -> int:  # noqa: N802
    """How many IPUs each replica has.

    Source: `popdist.getNumIpusPerReplica`.

    Example:
        >>> getNumIpusPerReplica()
        1
    """
    return instances.current().ipus_per_replica


def getDeviceId(ipus_per_replica: int | None = None) -> int:  # noqa: N802
    """The Poplar device for this instance's replicas, which no other instance has an IPU of.

    Args:
        ipus_per_replica: what each replica needs; what `poprun` was told when left out.

    Raises:
        TypeError: `ipus_per_replica` is no integer.
        ValueError: it is below 1, or the simulated system has not enough IPUs for all instances.

    Source: `popdist.getDeviceId`.

    Example:
        >>> getDeviceId(ipus_per_replica=1)
        0
    """
    here = instances.current()
    ipus = instances.checked_ipus_per_replica(ipus_per_replica, here)
    return instances.device_id(here, here.local_replicas * ipus)


def synchronize() -> None:
    """Waits until all instances have come here.

    Raises:
        CollectiveError: one of them has ended.

    Source: `popdist.synchronize`.

    Example:
        >>> synchronize()
    """
    collectives.run("sum", "popdist.synchronize", [np.zeros([], np.int32)])
