"""The memory plans of the programs that this process has lowered, by device."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING

from tf_ipu_shim.machine.memory import MemoryPlan

if TYPE_CHECKING:
    from tf_ipu_shim.runtime.device import IpuDevice

_lock = threading.Lock()
_recorded: dict[int, tuple[IpuDevice, dict[Hashable, MemoryPlan]]] = {}


def record(device: IpuDevice, program: Hashable, plan: MemoryPlan) -> None:
    """Keeps a program's plan, in place of an older one of the same program.

    Plans of an older configuration are forgotten when the first program of a new one comes.

    Args:
        device: it was made for.
        program: tells programs apart: one that is lowered for other argument shapes is another program.
        plan: the figures.
    """
    with _lock:
        known = _recorded.get(device.ordinal)
        if known is None or known[0] is not device:
            known = _recorded[device.ordinal] = (device, {})
        known[1][program] = plan


def recorded() -> dict[int, tuple[IpuDevice, list[MemoryPlan]]]:
    """The plans by the device's ordinal, in the order in which the programs came."""
    with _lock:
        return {ordinal: (device, list(plans.values())) for ordinal, (device, plans) in sorted(_recorded.items())}


def forget() -> None:
    """Forgets all plans."""
    with _lock:
        _recorded.clear()
