"""Records the memory plans of lowered programs by device."""

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
    """Records a program's plan, replacing an older one.

    Plans of an older configuration are forgotten at the first program of a new one.
    """
    with _lock:
        recorded = _recorded.get(device.ordinal)
        if recorded is None or recorded[0] is not device:
            recorded = _recorded[device.ordinal] = (device, {})
        recorded[1][program] = plan


def recorded() -> dict[int, tuple[IpuDevice, list[MemoryPlan]]]:
    """Returns the plans by device ordinal, in program order."""
    with _lock:
        return {ordinal: (device, list(plans.values())) for ordinal, (device, plans) in sorted(_recorded.items())}


def forget() -> None:
    """Forgets all plans."""
    with _lock:
        _recorded.clear()
