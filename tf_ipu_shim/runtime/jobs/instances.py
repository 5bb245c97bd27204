"""Distributes a job's replicas over its processes, which PopRun calls instances.

`tf-ipu poprun` sets environment variables for that; without them a job has one replica in each process.
"""

from __future__ import annotations

import dataclasses
import numbers
import os
from typing import Any

from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.runtime.jobs import job

TOTAL_REPLICAS = "POPDIST_NUM_TOTAL_REPLICAS"
IPUS_PER_REPLICA = "POPDIST_NUM_IPUS_PER_REPLICA"
# Which of the devices of an instance's size the first instance of this machine has: others may be another job's.
FIRST_DEVICE = "TF_IPU_SHIM_FIRST_DEVICE"


_ON_MODEL = (
    "Replicas of several instances cannot exchange data on the IPU model. Leave --use_ipu_model out of "
    "TF_POPLAR_FLAGS, "
    "or reduce with PopDistStrategy or ipu.distributed, which do so on the host."
)


@dataclasses.dataclass(frozen=True)
class Instance:
    """This process's share of a job.

    Args:
        index: its number, from 0.
        instances: how many there are.
        local_index: its number among the processes of this machine, from 0.
    """

    index: int
    instances: int
    total_replicas: int
    ipus_per_replica: int
    local_index: int = 0

    @property
    def local_replicas(self) -> int:
        """The replicas of this instance; all have as many."""
        return self.total_replicas // self.instances

    @property
    def num_ipus(self) -> int:
        """The IPUs of this instance."""
        return self.local_replicas * self.ipus_per_replica


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of a program's replicas in this process, an instance of a job.

    Args:
        instances: how many there are; all have as many replicas.
        problem: why they cannot meet; empty if they can.
    """

    index: int = 0
    instances: int = 1
    problem: str = ""


WHOLE = Share()
"""All replicas of a program, in one process."""


def from_launcher() -> bool:
    """Returns whether PopRun started this process."""
    return TOTAL_REPLICAS in os.environ


def current() -> Instance:
    """This process's share; all of it if no other process was started with it.

    Example:
        >>> current()
        Instance(index=0, instances=1, total_replicas=1, ipus_per_replica=1, local_index=0)
    """
    current_job = job.current()
    total = _number(TOTAL_REPLICAS, current_job.size)
    if total % current_job.size:
        raise ValueError(
            f"{total} replicas cannot be divided evenly among {current_job.size} instances: the number of "
            "replicas must be "
            "a multiple of the number of instances. Change one of them."
        )
    return Instance(current_job.rank, current_job.size, total, _number(IPUS_PER_REPLICA, 1), current_job.local_rank)


def checked_ipus_per_replica(value: Any, instance: Instance) -> int:
    """Returns how many IPUs each replica has."""
    if value is None:
        return instance.ipus_per_replica
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"ipus_per_replica must be an integer, not {value!r}. Pass an integer.")
    if value < 1:
        raise ValueError(f"ipus_per_replica must be at least 1, but {value} was given. Pass at least 1.")
    return int(value)


def device_id(instance: Instance, num_ipus: int) -> int:
    """Returns the Poplar device of an instance, disjoint from other instances on the machine."""
    system = systems.current()
    devices = system.devices_with(num_ipus)
    setting = os.environ.get(FIRST_DEVICE, "")
    if setting.isdecimal() and num_ipus == instance.num_ipus:
        devices = devices[int(setting) :]
    if instance.local_index >= len(devices):
        raise ValueError(
            f"Instance {instance.index} needs a device of {num_ipus} IPUs of its own, and system {system.name} of "
            f"{system.num_ipus} IPUs has {len(devices)}. Start fewer instances or replicas, or choose a larger system "
            "with TF_IPU_SHIM_SYSTEM."
        )
    return devices[instance.local_index].id


def share_of_programs(options: Any) -> Share:
    """Returns which of its programs' replicas this process has.

    Example:
        >>> from tf_ipu_shim.messages import config_pb2
        >>> share_of_programs(config_pb2.IpuOptions())
        Share(index=0, instances=1, problem='')
    """
    count, index = options.multi_replica_process_count, options.multi_replica_process_index
    current_job = job.current()
    if count < 2:
        # `set_ipu_config` leaves the option out there, as Graphcore's software refuses it.
        on_model = current_job.size > 1 and from_launcher() and flags.current().use_ipu_model
        return Share(problem=_ON_MODEL) if on_model else WHOLE
    if (current_job.size, current_job.rank) == (count, index):
        return Share(index, count)
    return Share(
        index,
        count,
        (
            f"The configuration says that this is process {index} of {count} "
            f"(experimental.multi_replica_distribution), but it is process {current_job.rank} of {current_job.size} "
            "of its job. "
            f"Start the script with poprun --num-instances {count}, and let popdist.tensorflow.set_ipu_config set it."
        ),
    )


def _number(variable: str, default: int) -> int:
    setting = os.environ.get(variable, "")
    if setting and not (setting.isdecimal() and int(setting) > 0):
        raise ValueError(f"{variable} must be a number above 0; it is {setting!r}. Set it to a number above 0.")
    return int(setting) if setting else default
