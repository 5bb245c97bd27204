"""`popdist.tensorflow`: selects this instance's IPUs in a configuration."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration import checks
from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.legacy.config_functions import selection
from tf_ipu_shim.runtime.jobs import instances

__all__ = ["set_ipu_config"]


def set_ipu_config(config: Any, ipus_per_replica: int | None = None, configure_device: bool = True) -> Any:
    """Assigns this instance separate IPUs, and writes its index and the number of instances to the configuration.

    Args:
        config: an `IPUConfig`, or the result of `ipu.utils.create_ipu_config`.
        ipus_per_replica: the number of IPUs of a replica; by default `poprun`'s.
        configure_device: whether to choose the IPUs; else the script does, with `popdist.getDeviceId`.

    Returns:
        The configuration: the same `IPUConfig`, or a message of the older kind.

    Raises:
        TypeError: `config` is not a configuration, or `ipus_per_replica` is not an integer.
        ValueError: `ipus_per_replica` is below 1, `poprun` has another number, or the simulated system does not have
            enough.

    Source: `popdist.tensorflow.set_ipu_config`.

    Example:
        >>> config = set_ipu_config(ipu.config.IPUConfig(), ipus_per_replica=2)
        >>> config.auto_select_ipus
        2
    """
    instance = instances.current()
    ipus_per_replica = instances.checked_ipus_per_replica(ipus_per_replica, instance)
    if not (isinstance(config, IPUConfig) or hasattr(type(config), "DESCRIPTOR")):
        raise TypeError(f"config must be an ipu.config.IPUConfig, not {type(config).__name__}.")
    if instances.from_launcher() and ipus_per_replica != instance.ipus_per_replica:
        raise ValueError(
            f"ipus_per_replica is {ipus_per_replica}, but poprun was started with --ipus-per-replica "
            f"{instance.ipus_per_replica}; both must be equal. Change one of them."
        )
    num_ipus = instance.local_replicas * ipus_per_replica
    # The IPU model, and a process on its own, have IPUs but no ids to choose between.
    by_id = instance.instances > 1 and not checks.on_ipu_model()
    device = instances.device_id(instance, num_ipus) if by_id and configure_device else None
    if hasattr(type(config), "DESCRIPTOR"):  # a protobuf message, which older SDKs have instead of IPUConfig
        if configure_device:
            if device is None:
                config = selection.auto_select_ipus(config, num_ipus)
            else:
                config = selection.select_ipus(config, [device])
        config.multi_replica_process_count, config.multi_replica_process_index = instance.instances, instance.index
        return config
    if configure_device:
        if device is None:
            config.auto_select_ipus = num_ipus
        else:
            config.select_ipus = device
    if by_id:
        distribution = config.experimental.multi_replica_distribution
        distribution.process_count, distribution.process_index = instance.instances, instance.index
    return config
