"""Describes the simulated system as text and data, like `gc-info`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine.sharing.locks import Holder
from tf_ipu_shim.machine.systems import PoplarDevice, System

# Addresses of the published listing of a 16-IPU server.
_SIXTEEN = "1a 1b 23 24 3d 3e 43 44 8b 8c 8e 8f b8 b9 ba bb".split()
_PARTITION = "p1"
# Nothing measures a simulated IPU. Monitors of power and temperature get these constants, for idle and busy IPUs alike.
_WATTS_OF_AN_IPU = 80.0
_CONSTANTS = {
    "average board temp": "30.0 C",
    "average die temp": "40.0 C",
    "ipu temperature": "40.0 C",
    "ipu utilisation": "0.00%",
    "ipu utilisation (session)": "0.00%",
}
CONSTANT = ("ipu power", "board power", *_CONSTANTS)
"""The attributes that are constants because nothing measures them."""


def address(system: System, ipu: int) -> str:
    """Returns the address of an IPU: on PCI for a card, on the network for an IPU-Machine."""
    if system.fabric:
        return f"10.1.5.{10 + system.board_of(ipu)}"
    # No listing of C600 servers was published: theirs are made up.
    bus = _SIXTEEN[ipu] if system.num_ipus == len(_SIXTEEN) else f"{0x1A + ipu:02x}"
    return f"0000:{bus}:00.0"


def device_list(system: System, devices: tuple[PoplarDevice, ...] | None = None) -> str:
    """Returns the output of `gc-info -l`.

    Source: docs/reference/facts.md, section "Device listings".

    Example:
        >>> from tf_ipu_shim.machine import systems
        >>> print(device_list(systems.named("c600")))
        Graphcore device listing:
        <BLANKLINE>
        -+- Id: [0], type:      [PCIe], PCI Domain: [0000:1a:00.0]
    """
    lines = ["Graphcore device listing:", f"Partition: {_PARTITION} [active]" if system.fabric else ""]
    for device in system.devices if devices is None else devices:
        lines += _device_lines(system, device)
    return "\n".join(lines)


def attributes(system: System, device: PoplarDevice, holders: Mapping[int, Holder]) -> dict[str, str]:
    """Returns a device's attributes by Graphcore's names, if a simulated device has them.

    Those in `CONSTANT` are the same at all times: 80 W for each IPU, no utilisation.

    Example:
        >>> from tf_ipu_shim.machine import systems
        >>> system = systems.named("pod4")
        >>> attributes(system, system.devices[0], {})["ipu architecture"]
        'ipu2'
    """
    chip = system.chip
    facts: dict[str, Any] = {"id": device.id}
    if device.num_ipus > 1:
        facts["target"] = "Multi IPU"
        facts["number of ipus"] = device.num_ipus
        facts["ipu ids"] = ", ".join(map(str, device.ipus))
    else:
        ipu = device.ipus[0]
        facts["target"] = "Fabric" if system.fabric else "PCIe"
        facts["board ipu index"] = system.index_on_board(ipu)
        facts["ipuof host" if system.fabric else "pci domain"] = address(system, ipu)
    facts |= {
        "board type": system.board,
        "chip": chip.title,
        "clock": f"{chip.clock_hz / 1e6:.0f}MHz",
        "ipu architecture": chip.target,
        "memory per ipu (bytes)": chip.total_bytes,
        "memory per tile (bytes)": chip.bytes_per_tile,
        "remote buffers supported": 1,
        "tiles per ipu": chip.tiles,
        "worker contexts per tile": chip.worker_contexts,
    }
    boards = {system.board_of(ipu) for ipu in device.ipus}
    facts["ipu power"] = _watts(device.num_ipus)
    facts["board power"] = _watts(len(boards) * system.ipus_per_board)
    facts |= _CONSTANTS
    users = sorted({holders[ipu].pid for ipu in device.ipus if ipu in holders})
    facts["in use by process"] = ", ".join(map(str, users)) or "none"
    return {name: str(value) for name, value in facts.items()}


def _watts(ipus: int) -> str:
    return f"{ipus * _WATTS_OF_AN_IPU:.2f}W"


def device_info(system: System, device: PoplarDevice, holders: Mapping[int, Holder]) -> str:
    """Returns the output of `gc-info -d ID -i`: the `attributes` of a device, one a line."""
    lines = (f"  {name}: {value}" for name, value in attributes(system, device, holders).items())
    return "\n".join(["Device Info:", *lines])


def summary(system: System) -> str:
    """Returns the system in a few lines."""
    chip = system.chip
    return "\n".join(
        (
            f"Simulated system: {system.name} ({system.title})",
            f"IPUs:             {system.num_ipus} x {chip.title}, target {chip.target}, {chip.clock_hz / 1e6:.0f} MHz",
            f"Memory of each:   {chip.total_bytes / 2**20:.0f} MiB, {chip.tiles} tiles of "
            f"{chip.bytes_per_tile // 1024} KiB",
            f"Poplar devices:   ids 0 to {len(system.devices) - 1}; `tf-ipu info -l` lists them",
        )
    )


def processes(holders: Mapping[int, Holder], now: float | None = None) -> str:
    """Returns which process has attached to which IPUs, as a table."""
    if not holders:
        return "No process is attached to an IPU."
    moment = time.time() if now is None else now
    lines = ["Attached processes:", f"  {'PID':>8}  {'Device':>6}  {'Time':>8}  {'IPUs':<16}  Command"]
    for holder in sorted(set(holders.values()), key=lambda h: (h.since, h.pid)):
        ipus = ",".join(str(ipu) for ipu in sorted(holders) if holders[ipu] == holder)
        if not holder.pid:
            lines.append(f"  {'?':>8}  {'?':>6}  {'?':>8}  {ipus:<16}  ?")
            continue
        held_for = _duration(moment - holder.since)
        lines.append(f"  {holder.pid:>8}  {holder.device_id:>6}  {held_for:>8}  {ipus:<16}  {holder.command}")
    return "\n".join(lines)


def as_data(system: System, devices: tuple[PoplarDevice, ...], holders: Mapping[int, Holder]) -> dict[str, Any]:
    """Returns the same as plain data, ready for JSON."""
    chip = system.chip
    return {
        "system": {"name": system.name, "title": system.title, "ipus": system.num_ipus, "board": system.board},
        "chip": {
            "name": chip.name,
            "target": chip.target,
            "tiles": chip.tiles,
            "bytes_per_tile": chip.bytes_per_tile,
            "total_bytes": chip.total_bytes,
            "clock_hz": chip.clock_hz,
        },
        "devices": [{"id": device.id, "ipus": list(device.ipus)} for device in devices],
        "in_use": [
            {"ipu": ipu, "pid": h.pid, "command": h.command, "since": h.since, "device": h.device_id}
            for ipu, h in sorted(holders.items())
            if any(ipu in device.ipus for device in devices)
        ],
    }


def _device_lines(system: System, device: PoplarDevice) -> list[str]:
    id_width = len(f"[{len(system.devices) - 1}]")
    kind = "target" if system.fabric else "type"

    def place(ipu: int) -> str:
        if system.fabric:
            return f"IPU-M host: [{address(system, ipu)}], IPU#: [{system.index_on_board(ipu)}]"
        return f"PCI Domain: [{address(system, ipu)}]"

    head = f"-+- Id: {f'[{device.id}]':>{id_width}}, {kind}: "
    if device.num_ipus == 1:
        single = "[Fabric]" if system.fabric else f"{'[PCIe]':>11}"
        return [f"{head}{single}, {place(device.ipus[0])}"]
    member = " |--- " if system.fabric else " |--- PCIe "
    ipu_width = len(f"[{system.num_ipus - 1}]")
    return [
        f"{head}[Multi IPU]",
        *(
            f"{member}Id: {f'[{ipu}]':>{ipu_width}}, DNC Id: [{index}], {place(ipu)}"
            for index, ipu in enumerate(device.ipus)
        ),
    ]


def _duration(seconds: float) -> str:
    total_seconds = max(0, int(seconds))
    if total_seconds < 60:
        return f"{total_seconds}s"
    return (
        f"{total_seconds // 60}m{total_seconds % 60:02}s"
        if total_seconds < 3600
        else f"{total_seconds // 3600}h{total_seconds // 60 % 60:02}m"
    )
