"""Creates the TensorFlow IPU devices that a configuration asks for."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.device import IpuDevice


def create_devices(options: Any, first: int = 0) -> list[IpuDevice]:
    """Creates the TensorFlow devices of a configuration, not yet attached."""
    system = systems.current()
    selections = [
        (selection.WhichOneof("selection"), int(selection.auto_count), int(selection.cfg_index))
        for selection in options.device_config
    ]
    if not selections:
        log.default_device(Device(first))
        selections = [("auto_count", 1, 0)]
    return [
        _device_by_id(Device(ordinal), index, options, system)
        if kind == "cfg_index"
        else _device_by_count(Device(ordinal), count, options, system)
        for ordinal, (kind, count, index) in enumerate(selections, first)
    ]


def _device_by_count(ordinal: Device, num_ipus: int, options: Any, system: systems.System) -> IpuDevice:
    candidates = system.devices_with(num_ipus)
    device = IpuDevice(ordinal, num_ipus, options, system, candidates)
    # A model, or a program that is only compiled, may have any number of IPUs: nothing has to be found for it.
    if num_ipus < 1 or not (candidates or device.on_model or device.compiles_only):
        from tensorflow.compat.v2 import errors

        sizes = sorted({len(candidate.ipus) for candidate in system.devices})
        raise errors.FailedPreconditionError(
            None,
            None,
            f"Unsupported number of IPUs requested - could not find an IPU device with {num_ipus} IPUs for the "
            f"TensorFlow virtual device /device:IPU:{ordinal}. Use `tf-ipu info -l` to list the devices of the system: "
            f"those of {system.name} can have {', '.join(map(str, sizes))} IPUs. "
            f"{_enough_ipus(num_ipus, sizes, system)}",
        )
    return device


def _enough_ipus(required: int, sizes: list[int], system: systems.System) -> str:
    """Suggests a device size, or a system with enough IPUs of this chip."""
    if required < 1:
        return "Ask for 1 or more."
    if required < sizes[-1]:
        larger = next(size for size in sizes if size > required)
        return f"Ask for {larger}: a program may leave some of its IPUs unused."
    larger_devices = [
        candidate
        for candidate in systems.SYSTEMS.values()
        if candidate.chip == system.chip and candidate.num_ipus >= required
    ]
    if not larger_devices:
        return "No simulated system has more."
    least = min(larger_devices, key=lambda candidate: candidate.num_ipus)
    return f"Simulate a larger system: {systems.ENVIRONMENT_VARIABLE}={least.name} has {least.num_ipus} IPUs."


def _device_by_id(ordinal: Device, index: int, options: Any, system: systems.System) -> IpuDevice:
    if index >= len(system.devices):
        from tensorflow.compat.v2 import errors

        raise errors.InvalidArgumentError(
            None,
            None,
            f"Requested device configuration index {index}, but {len(system.devices)} configurations are available "
            f"for the TensorFlow virtual device /device:IPU:{ordinal}: ids 0 to {len(system.devices) - 1} of "
            f"{system.name}. Use `tf-ipu info -l` to list them.",
        )
    device = system.devices[index]
    return IpuDevice(ordinal, len(device.ipus), options, system, (device,))
