"""Attaches to the IPUs of a device and holds them exclusively."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from tf_ipu_shim.machine.sharing import locks
from tf_ipu_shim.machine.sharing.locks import Holder, LockDirectoryError
from tf_ipu_shim.machine.systems import PoplarDevice, System

__all__ = ["Attachment", "Holder", "LockDirectoryError", "attach", "attach_first", "in_use", "wait"]


class Attachment:
    """All IPUs of one Poplar device, held by this process until `release()`, or until it ends.

    Garbage collection also releases them. A forked child inherits nothing: its copy counts as released, and releasing
    it leaves the parent attached.
    """

    def __init__(self, system: System, device: PoplarDevice, chip_locks: locks.ChipLocks) -> None:
        """For `attach` only."""
        self.system = system
        self.device = device
        self._locks = chip_locks

    @property
    def held(self) -> bool:
        """Returns whether this process has the IPUs still."""
        return self._locks.held

    def release(self) -> None:
        """Releases the IPUs for others; a second call does nothing."""
        self._locks.release()

    def __enter__(self) -> Attachment:
        """Returns itself; leaving the block releases it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Releases."""
        self.release()

    def __repr__(self) -> str:
        """Names system, device and state."""
        state = "held" if self.held else "released"
        return f"<Attachment {state}: {self.system.name} device {self.device.id}, IPUs {self.device.ipus}>"


def attach(system: System, device: PoplarDevice) -> Attachment | None:
    """Locks all IPUs of a device, or none; it never waits for a busy one.

    Example:
        >>> from tf_ipu_shim.machine import systems
        >>> system = systems.named("m2000")
        >>> with attach(system, system.device(4)):
        ...     attach(system, system.device(6)) is None
        True
    """
    if device.id >= len(system.devices) or system.devices[device.id] != device:
        raise ValueError(f"{device} is not a device of system {system.name!r}. Use one of its `devices`.")
    lock = locks.take(system.name, device.ipus, device.id)
    return None if lock is None else Attachment(system, device, lock)


def attach_first(system: System, devices: Iterable[PoplarDevice]) -> Attachment | None:
    """Attaches to the first of some devices that is free."""
    for device in devices:
        attachment = attach(system, device)
        if attachment is not None:
            return attachment
    return None


def wait(
    system: System,
    devices: Iterable[PoplarDevice],
    *,
    poll_seconds: float,
    timeout_seconds: float,
    on_wait: Callable[[], None] | None = None,
    stop: threading.Event | None = None,
) -> Attachment | None:
    """Tries repeatedly to attach to one of some devices, as an on-demand connection does.

    Source: docs/reference/facts.md, section "Choosing and attaching devices".
    """
    candidates = tuple(devices)
    stop = stop or threading.Event()
    deadline = time.monotonic() + timeout_seconds
    attachment = attach_first(system, candidates)
    if attachment is None and on_wait is not None:
        on_wait()
    while attachment is None and (remaining := deadline - time.monotonic()) > 0:
        if stop.wait(min(poll_seconds, remaining)):
            return None
        attachment = attach_first(system, candidates)
    return attachment


def first_free(system: System, ipus: int, count: int) -> int | None:
    """Returns the first of `count` consecutive unused devices with this number of IPUs.

    Returns:
        0 if none is free: a later request then names the processes that hold them. None if the system has too few.
    """
    devices = system.devices_with(ipus)
    if len(devices) < count:
        return None
    busy = set(in_use(system))
    for first in range(len(devices) - count + 1):
        if busy.isdisjoint(ipu for device in devices[first : first + count] for ipu in device.ipus):
            return first
    return 0


def in_use(system: System) -> dict[int, Holder]:
    """Returns the holder of each IPU: process, command and start time, by IPU number."""
    return locks.holders(system.name, system.num_ipus)
