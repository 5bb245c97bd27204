"""Defines the records of a memory report: modelled and measured figures of IPUs, devices and the process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine.memory import IpuPlan, MemoryPlan
from tf_ipu_shim.plugin.library import Transfers

NOT_MODELLED = "code, stacks, exchange code, host buffers, temporaries inside one library call"
NOT_MODELLED_WITH_CODE = "host buffers; temporaries inside library calls have a separate table"


@dataclasses.dataclass(frozen=True)
class IpuReport:
    """One IPU of a TensorFlow device.

    Args:
        ipu: its place in the device: `selection_order` assigns these to shards.
        physical: its number in the system; the same as `ipu` until the device is attached.
        modelled: the bytes that the largest of the programs needs on it; None if no program uses it.
        program: the name of that program.
        variable_bytes: modelled bytes of all programs' variables on it, each variable once.
        measured_live_bytes: the bytes in its arena now.
        measured_peak_bytes: the most bytes in its arena at once.
    """

    ipu: int
    physical: int
    modelled: IpuPlan | None
    program: str
    variable_bytes: int
    measured_live_bytes: int
    measured_peak_bytes: int


@dataclasses.dataclass(frozen=True)
class DeviceReport:
    """One TensorFlow device.

    Args:
        name: such as `/device:IPU:0`.
        chip: title of its chip.
        poplar_id: the Poplar device it is attached to; None while it is not.
        ipus: one for each of its IPUs.
        programs: the plans of the programs lowered under this configuration. One at a time is on the IPUs.
        host_to_device: measured, since the counters were reset.
        device_to_host: the same for the other direction.
        exchange: measured, by (source, destination) IPU; pairs that exchanged nothing are left out.
        programs_lowered: how many programs were lowered.
        programs_run: how many times a program ran.
    """

    name: str
    chip: str
    poplar_id: int | None
    ipus: tuple[IpuReport, ...]
    programs: tuple[MemoryPlan, ...]
    host_to_device: Transfers
    device_to_host: Transfers
    exchange: Mapping[tuple[int, int], Transfers]
    programs_lowered: int
    programs_run: int


@dataclasses.dataclass(frozen=True)
class ReportData:
    """Modelled and measured figures of this process's programs, never mixed.

    Args:
        sdk: the SDK that is emulated.
        devices: one for each TensorFlow device.
        without_effect: options, flags and arguments in use that have no effect on a simulated system.
    """

    sdk: str
    devices: tuple[DeviceReport, ...]
    without_effect: tuple[tuple[str, Any], ...]
