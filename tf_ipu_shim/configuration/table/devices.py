"""Table of the options that select IPUs, their generation and the time of attachment."""

from __future__ import annotations

from typing import Union

from tf_ipu_shim.configuration.enums import DeviceConnectionType, SelectionOrder
from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.machine.environment.effects import DEVICES, MACHINE, MEMORY, RESULTS

_INSTANCES = "collectives, indices and numbers of replicas in programs are those of all processes of a job"
_IPU_NUMBERS = Union[int, list[int], tuple[int, ...]]

OPTIONS: tuple[Option, ...] = (
    Option(
        "selection_order",
        SelectionOrder.AUTO,
        "Order in which shards take the IPUs of a multi-IPU device.",
        "selection_order",
        effect=DEVICES,
        meaning="the IPU of each shard, and so between which IPUs exchanges are",
    ),
    Option(
        "auto_select_ipus",
        list,
        "Configure the IPUs to be used by their number, or one for each TensorFlow device; the first that are free.",
        annotation=_IPU_NUMBERS,
        effect=DEVICES,
        meaning="how many IPUs each TensorFlow device has",
    ),
    Option(
        "select_ipus",
        list,
        "Poplar device id as `tf-ipu info -l` lists them, or one for each TensorFlow device.",
        annotation=_IPU_NUMBERS,
        effect=DEVICES,
        meaning="which IPUs each TensorFlow device has",
    ),
    Option(
        "device_connection.type",
        DeviceConnectionType.ALWAYS,
        "Attach when configured, when first used, or never.",
        "device_connection_type",
        effect=DEVICES,
        meaning="when they are attached; with NEVER and PRE_COMPILE programs are compiled only",
    ),
    Option(
        "device_connection.version",
        "",
        "Chip to compile for when no device is attached: ipu1, ipu2 or ipu21.",
        "ipu_version",
        effect=MACHINE,
        meaning="the chip of a device that never attaches",
    ),
    Option(
        "device_connection.enable_remote_buffers",
        False,
        "Whether the chip compiled for without a device has remote buffers.",
        "enable_remote_buffers_without_device",
        effect=MEMORY,
        meaning="of what is not attached at once, optimizer state is in remote memory where the script leaves it open",
    ),
    Option(
        "experimental.multi_replica_distribution.process_index",
        0,
        "Rank of this process.",
        "multi_replica_process_index",
        effect=RESULTS,
        meaning=_INSTANCES,
    ),
    Option(
        "experimental.multi_replica_distribution.process_count",
        0,
        "Number of processes; 0 if there is only this one.",
        "multi_replica_process_count",
        effect=RESULTS,
        meaning=_INSTANCES,
    ),
    Option(
        "ipu_model.compile_ipu_code",
        True,
        "Compile the chip's own code when simulating.",
        "ipu_model_config.compile_ipu_code",
        meaning="there is no IPU code to compile",
    ),
    Option(
        "ipu_model.tiles_per_ipu",
        0,
        "Tiles of each simulated IPU; 0 for the chip's own number.",
        "ipu_model_config.tiles_per_ipu",
        effect=MACHINE,
        meaning="tiles, with the flag --use_ipu_model",
    ),
    Option(
        "ipu_model.version",
        "ipu2",
        "Specify the IPU version to be used by the IPU model: ipu1, ipu2 or ipu21.",
        "ipu_model_config.ipu_model_version",
        effect=MACHINE,
        meaning="the chip, with the flag --use_ipu_model",
    ),
)
