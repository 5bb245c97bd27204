"""Describes the simulated IPUs as JSON data, like `gc-inventory` and `gc-monitor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine.gc_tools import listing
from tf_ipu_shim.machine.sharing.locks import Holder
from tf_ipu_shim.machine.systems import PoplarDevice, System


def devices(system: System, holders: Mapping[int, Holder]) -> dict[str, Any]:
    """Returns the output of `gc-inventory -j`: the attributes of each device, as text by name.

    Example:
        >>> from tf_ipu_shim.machine import systems
        >>> devices(systems.named("pod4"), {})["devices"][0]["remote buffers"]
        '1'
    """
    return {"devices": [_attributes(system, device, holders) for device in system.devices]}


def cards(system: System, holders: Mapping[int, Holder]) -> dict[str, Any]:
    """Returns the output of `gc-monitor -j`: each board with its IPUs, and the processes attached to them.

    Example:
        >>> from tf_ipu_shim.machine import systems
        >>> [len(card["ipus"]) for card in cards(systems.named("pod16"), {})["cards"]]
        [4, 4, 4, 4]
    """
    boards: dict[int, list[PoplarDevice]] = {}
    for device in system.devices:
        if device.num_ipus == 1:
            boards.setdefault(system.board_of(device.ipus[0]), []).append(device)
    return {
        "cards": [
            {"type": system.board, "ipus": [_with_process(system, device, holders) for device in board]}
            for board in boards.values()
        ]
    }


def _attributes(system: System, device: PoplarDevice, holders: Mapping[int, Holder]) -> dict[str, str]:
    attributes = listing.attributes(system, device, holders)
    return attributes | {"remote buffers": attributes["remote buffers supported"]}  # as Graphcore's examples ask for it


def _with_process(system: System, device: PoplarDevice, holders: Mapping[int, Holder]) -> dict[str, Any]:
    holder = holders.get(device.ipus[0])
    processes = [] if holder is None else [{"PID": str(holder.pid), "command": holder.command}]
    return {**_attributes(system, device, holders), "PIDs": processes}
