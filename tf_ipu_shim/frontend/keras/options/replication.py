"""Computes a model's replication factor and reduces metrics over replicas."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.validation.enum_members import parse_member
from tf_ipu_shim.machine import selection
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.tf_private.graphs import device as device_lib


class ReplicatedMetricReductionMethod(enum.Enum):
    """The reduction of metrics over replicas.

    Attributes:
        NONE: the value of the last replica.
        LIST: an array with the value of each replica.
        SUM: their sum.
        MEAN: their mean.

    Source: `keras.ipu.ReplicatedMetricReductionMethod`.
    """

    NONE = 1
    LIST = 2
    SUM = 3
    MEAN = 4

    @classmethod
    def parse(cls, value: Any) -> ReplicatedMetricReductionMethod:
        """Returns the method that a script names.

        Args:
            value: a member, or its name in any case.

        Raises:
            ValueError: it is neither.

        Source: `keras.ipu.ReplicatedMetricReductionMethod.parse`.

        Example:
            >>> ReplicatedMetricReductionMethod.parse("mean").name
            'MEAN'
        """
        method = parse_member(cls, value)
        if method is None:
            raise ValueError(
                f"Cannot parse {value!r} as a ReplicatedMetricReductionMethod. Valid values are "
                f"{', '.join(cls.__members__)}. Pass one of these."
            )
        return method


def num_ipus(device: str) -> int:
    """Returns the number of IPUs of a TensorFlow device.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.auto_select_ipus = 2
        >>> config.configure_ipu_system()
        >>> num_ipus("/device:IPU:0")
        2
    """
    spec = device_lib.DeviceSpec.from_string(device or "")
    if spec.device_type != "IPU":
        raise ValueError(
            f"Keras models with IPU extensions can only be used on an IPU device, not on {device or 'the CPU'}. "
            "Call fit, evaluate and predict in the scope of an IPUStrategy."
        )
    return devices.get(spec.device_index or 0).num_ipus


def replication_factor(device: str, shards: int, mapping: Sequence[int] | None = None) -> int:
    """Returns the number of replicas of a model that fit on a TensorFlow device.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.auto_select_ipus = 8
        >>> config.configure_ipu_system()
        >>> replication_factor("/device:IPU:0", 2)
        4
    """
    available = num_ipus(device)
    ipus_per_replica = selection.ipus_of_replica(shards, available)
    if shards > available:
        mapped = _mapped_ipus(mapping, available)
        raise ValueError(
            f"Current device has {available} IPUs attached, however the current model requires a multiple of "
            f"{ipus_per_replica} IPUs{mapped}. Set auto_select_ipus of the IPUConfig to {ipus_per_replica} or a "
            f"multiple{_other_fix(bool(mapped))}."
        )
    return max(available // ipus_per_replica, 1)


def _mapped_ipus(mapping: Sequence[int] | None, available: int) -> str:
    if not mapping:
        return ""
    return (
        f": device_mapping={list(mapping)} of its options puts a stage on IPU {max(mapping)}, and the last one is IPU "
        f"{available - 1}"
    )


def _other_fix(mapped: bool) -> str:
    if devices.configured() is None:
        return (
            ", and call its configure_ipu_system() before creating the strategy: no IPU system is configured, so there "
            "is one IPU"
        )
    other = "name only IPUs that the device has" if mapped else "give the model fewer pipeline stages or shards"
    return f" before configure_ipu_system, or {other}"


def reduce_metrics(logs: Any, replicas: int, method: ReplicatedMetricReductionMethod) -> Any:
    """Combines the values of all replicas into one."""
    if replicas == 1:
        return logs
    if method is ReplicatedMetricReductionMethod.LIST:
        return logs  # arrays, which Keras' progress bar can take the mean of
    reduction = {
        ReplicatedMetricReductionMethod.NONE: lambda value: value[-1],
        ReplicatedMetricReductionMethod.SUM: lambda value: value.sum(axis=0),
        ReplicatedMetricReductionMethod.MEAN: lambda value: value.mean(axis=0),
    }[method]
    return nest.map_structure(reduction, logs)
