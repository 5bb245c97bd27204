"""Checks combinations of options when a configuration is applied."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration.enums import DeviceConnectionType, ExecutionProfileType


def check(config: Any) -> None:
    """Refuses combinations of options that contradict each other."""
    model = on_ipu_model()
    _check_selection(config, model)
    _check_connection(config, model)
    _check_tiles(config)
    distribution = config.experimental.multi_replica_distribution
    if distribution.process_count > 0 and model:
        raise Exception(
            "Multi-replica distribution is not supported on the IPU model. "
            f"experimental.multi_replica_distribution.process_count is {distribution.process_count}. "
            "Leave --use_ipu_model out of TF_POPLAR_FLAGS, or set process_count to 0."
        )
    if distribution.process_count and not 0 <= distribution.process_index < distribution.process_count:
        raise ValueError(
            "experimental.multi_replica_distribution.process_index must be in the range "
            f"0 <= process_index < process_count; it is {distribution.process_index} of {distribution.process_count}."
            " Pass an index in this range."
        )
    if "_profiling" in config._attributes:
        _check_profiling(config._profiling)


def on_ipu_model() -> bool:
    """Returns whether the current `TF_POPLAR_FLAGS` selects the IPU Model."""
    from tf_ipu_shim.machine.environment import flags

    return flags.current().use_ipu_model


def _check_selection(config: Any, model: bool) -> None:
    if config.auto_select_ipus and config.select_ipus not in ([], ()):  # 0 is the id of a device
        raise Exception(
            "Only one of `auto_select_ipus` and `select_ipus` can be set: the first takes a number of IPUs, the "
            f"second ids of devices. They are {config.auto_select_ipus} and {config.select_ipus}."
        )
    counts = config.auto_select_ipus
    for count in [counts] if isinstance(counts, int) else counts:
        if count < 0:
            raise ValueError(
                f"auto_select_ipus is {counts!r}, but no device can have {count} IPUs. Pass the number of "
                "IPUs of the device, or a list with the number of each."
            )
    indices = config.select_ipus
    if not isinstance(indices, int):
        if len(set(indices)) != len(indices):
            raise ValueError(
                f"All MultiIPU indices in `select_ipus` must be unique; they are {list(indices)}. Remove the "
                "duplicates."
            )
    if indices and model:
        raise Exception(
            "When using the IPUModel, the devices to attach to cannot be chosen by id: there are none. "
            f"Use `auto_select_ipus` instead of `select_ipus` = {indices}."
        )


def _check_connection(config: Any, model: bool) -> None:
    connection = config.device_connection
    unattached = (DeviceConnectionType.PRE_COMPILE, DeviceConnectionType.NEVER)
    if connection.type in unattached and not connection.version:
        raise ValueError(
            f"device_connection.version must be set when device_connection.type is {connection.type.name}: "
            "nothing else says which chip to compile for. Use ipu1, ipu2 or ipu21."
        )
    if model and not config.ipu_model.version:
        raise ValueError("ipu_model.version must be set when using the IPUModel: it is empty. Use ipu1, ipu2 or ipu21.")


def check_io_tiles(tiles: int, has_ops: bool | None, tiles_name: str, places_name: str) -> None:
    """Refuses numbers of I/O tiles that do not exist or hold nothing."""
    if tiles < 0:
        raise ValueError(f"{tiles_name} is {tiles}; expected a number of tiles, 0 or more. Pass such a number.")
    if has_ops and tiles == 0:
        raise ValueError(
            f"Cannot place ops on I/O tiles when {tiles_name} is 0. Set it above 0, or {places_name} to False."
        )


def check_statistics_group(group: int, name: str) -> None:
    """Refuses groups without replicas, which cannot share statistics."""
    if group < 1:
        raise ValueError(f"{name} needs to be at least 1; it is {group}. 1 shares nothing. Pass 1 or more.")


def _check_tiles(config: Any) -> None:
    tiles = config.io_tiles
    group = config.norms.experimental.distributed_batch_norm_replica_group_size
    check_io_tiles(
        tiles.num_io_tiles, tiles.place_ops_on_io_tiles, "io_tiles.num_io_tiles", "io_tiles.place_ops_on_io_tiles"
    )
    if not tiles.available_memory_proportion >= 0:
        raise ValueError(
            f"io_tiles.available_memory_proportion is {tiles.available_memory_proportion}; expected a "
            "share of the I/O tiles' memory, 0 or more. Pass such a number; above 1 everything is put "
            "there."
        )
    check_statistics_group(group, "norms.experimental.distributed_batch_norm_replica_group_size")
    if tiles.num_io_tiles > 0 and group > 1:
        raise ValueError(
            "norms.experimental.distributed_batch_norm_replica_group_size is not supported with I/O tiles. It is "
            f"{group} with {tiles.num_io_tiles} I/O tiles: set one of them back."
        )


def _check_profiling(profiling: Any) -> None:
    if profiling.profiling and profiling.enable_ipu_events:
        raise Exception(
            "`profiling` and `enable_ipu_events` are mutually exclusive: the first includes the events of the second."
        )
    if profiling.profile_execution not in (False, ExecutionProfileType.NO_PROFILE) and not profiling.profiling:
        raise Exception("`profiling` is required when `profile_execution` is set.")
