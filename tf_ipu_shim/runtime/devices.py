"""Manages the TensorFlow IPU devices that this process has configured.

There is one configuration at a time. Every function may be called from any thread. After an exception no device is
configured or attached, so the next call starts from the beginning.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.plugin.library import APPLICATION_DEVICES, MAXIMUM_DEVICES
from tf_ipu_shim.profiling import settings
from tf_ipu_shim.runtime import ignored_options, log, trace
from tf_ipu_shim.runtime.device import ALWAYS, ON_DEMAND, IpuDevice
from tf_ipu_shim.runtime.device_creation import create_devices

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library


def _load_plugin() -> Library:
    from tf_ipu_shim import plugin

    return plugin.load()


load_library: Callable[[], Any] = _load_plugin
"""Returns the plugin; tests replace it."""

_lock = threading.RLock()
_options: Any = None
_flags_key: tuple[tuple[str, Any], ...] = ()  # of the flags that the active configuration began with
_devices: tuple[IpuDevice, ...] = ()
_applications: dict[int, IpuDevice] = {}
_recompiles = False


def configure(options: Any) -> None:
    """Creates this process's TensorFlow devices, and attaches them if the connection type says so.

    If an equal configuration is active, with the same `TF_POPLAR_FLAGS` for devices and programs, nothing changes.

    Source: `tensorflow.compiler.plugin.poplar` (C++ driver), docs/reference/facts.md, section "Choosing and attaching
        devices".

    Example:
        >>> options = config_pb2.IpuOptions()
        >>> options.device_config.add().auto_count = 4
        >>> configure(options)
        >>> get(0).poplar_id
        24
    """
    global _options, _flags_key
    with _lock:
        if _options is not None:
            if is_active(options):
                return
            from tensorflow.compat.v2 import errors

            raise errors.FailedPreconditionError(
                None,
                None,
                "IPU system configuration can only be set once: it is already set, with other options or other "
                f"{flags.ENVIRONMENT_VARIABLE}. Call ipu.config.reset_ipu_configuration() before configuring it again.",
            )
        _release()
        options, flags_key = _apply_flags(options), flags.current().compilation_key
        _start(_copy(options))
        _options, _flags_key = options, flags_key
        load_library().list_devices(len(_devices))


def reset() -> None:
    """Detaches from all IPUs and forgets the configuration, if there is one.

    Programs are lowered again when they next run.
    """
    global _options, _recompiles
    with _lock:
        active = _options is not None or bool(_devices)
        _options, _recompiles = None, False
        _release()
        if active:
            load_library().list_devices(None)
            load_library().new_epoch()


def expect_recompilation() -> None:
    """Notes that the script has an op that clears the caches of compiled programs: it holds until the next reset.

    An equal program that is lowered may be one whose cache was cleared. So each is a compilation from now on.
    """
    global _recompiles
    _recompiles = True


def expects_recompilation() -> bool:
    """Returns whether the script has an op that clears the caches of compiled programs."""
    return _recompiles


def is_active(options: Any) -> bool:
    """Returns whether the active configuration has these options and began with the flags in force now."""
    with _lock:
        return _options == _apply_flags(options) and _flags_key == flags.current().compilation_key


def configured() -> Any:
    """Returns a copy of the active `IpuOptions`; None when nothing was configured."""
    with _lock:
        return None if _options is None else _copy(_options)


def count() -> int:
    """Returns the number of TensorFlow devices; 1 (the default) if nothing was configured."""
    return len(_devices) or 1


def active() -> tuple[IpuDevice, ...]:
    """Returns the current TensorFlow devices; none before first use and after a reset."""
    return _devices


def applications() -> tuple[IpuDevice, ...]:
    """Returns the devices of embedded applications."""
    return tuple(_applications.values())


def get(ordinal: int = 0, attach: bool = True) -> IpuDevice:
    """Returns a TensorFlow device, attached unless it never attaches.

    Without a configuration, `/device:IPU:0` is created with a single IPU.
    """
    if ordinal in _applications:
        return _applications[ordinal]  # attached for as long as it is there
    with _lock:
        if not _devices:
            _start(config_pb2.IpuOptions())
        devices = _devices
    if not 0 <= ordinal < len(devices):
        from tensorflow.compat.v2 import errors

        names = ", ".join(device.name for device in devices)
        raise errors.InvalidArgumentError(
            None,
            None,
            f"There is no TensorFlow device /device:IPU:{ordinal}; expected one of {names}. Give "
            "`auto_select_ipus` or `select_ipus` one entry for each TensorFlow device, or use "
            "ipu.scopes.ipu_shard for the IPUs of one.",
        )
    if attach:
        # Outside the lock: an on-demand device may wait for an hour, and others must be able to work, or to reset.
        devices[ordinal].attach()
    return devices[ordinal]


def named(ordinal: int) -> IpuDevice:
    """Returns the TensorFlow device of a strategy, without attaching an on-demand one.

    If the device is not configured, it is created with a single IPU and the current options, and so are those before
    it.
    """
    with _lock:
        get(0, attach=False)
        options = config_pb2.IpuOptions() if _options is None else _copy(_options)
        options.ClearField("device_config")
        while len(_devices) <= ordinal < MAXIMUM_DEVICES:
            _add(load_library(), create_devices(options, len(_devices)))
        if _options is not None:
            load_library().list_devices(len(_devices))
        return get(ordinal, attach=False)


def add_application(options: Any, num_ipus: int) -> IpuDevice:
    """Creates and attaches a device for an embedded application."""
    library = load_library()
    own_options = _copy(options)
    own_options.ClearField("device_config")
    own_options.device_config.add().auto_count = num_ipus
    own_options.device_connection_type = ALWAYS
    with _lock:
        free = [ordinal for ordinal in APPLICATION_DEVICES if ordinal not in _applications]
        if not free:
            from tensorflow.compat.v2 import errors

            raise errors.ResourceExhaustedError(
                None,
                None,
                f"There can be {len(APPLICATION_DEVICES)} embedded engines in a process, and all are "
                "in use. Start more engines in another process.",
            )
        (device,) = create_devices(own_options, first=free[0])
        _applications[device.ordinal] = device
    try:
        device.attach()
    except BaseException:
        remove_application(device)
        raise
    library.set_float_checks(device.ordinal, device.float_checks)
    library.set_rounding(device.ordinal, device.rounding)
    library.keep_infinities(device.ordinal, device.on_model)
    return device


def remove_application(device: IpuDevice) -> None:
    """Removes an embedded application's device and frees its IPUs."""
    with _lock:
        _applications.pop(device.ordinal, None)
    device.close()


def _start(options: Any) -> None:
    library = load_library()
    devices = create_devices(options)
    log.poplar_version()
    ignored_options.note(devices[0].recorded_options())
    _add(library, devices)


def _add(library: Library, added: Sequence[IpuDevice]) -> None:
    """Attaches devices and registers them with TensorFlow."""
    global _devices
    devices = (*_devices, *added)
    try:
        for device in added:
            if device.connection == ALWAYS:
                device.attach()
        library.set_devices([device.num_ipus for device in devices], [device.float_checks for device in devices])
        for device in devices:
            library.set_rounding(device.ordinal, device.rounding)
            library.keep_infinities(device.ordinal, device.on_model)
        library.new_epoch()
        for device in added:
            _watch_plain_ops(library, device)
    except BaseException:
        for device in added:
            device.close()
        raise
    _devices = devices


def _apply_flags(options: Any) -> Any:
    """Returns a copy of options with the flags that override them applied."""
    copied = _copy(options)
    if flags.current().use_on_demand:
        copied.device_connection_type = ON_DEMAND
    return copied


def _watch_plain_ops(library: Library, device: IpuDevice) -> None:
    profiling = device.options.profiling
    has_transfers = profiling.enable_ipu_trace_events and profiling.enable_io_trace
    if has_transfers or settings.is_requested(device.engine_options):
        library.profile_plain_ops(device.ordinal)
    if profiling.enable_ipu_trace_events:
        events = trace.events_of(device.ordinal, "cluster", profiling, [])
        library.set_plain_op_events(device.ordinal, events.SerializeToString())


def _release() -> None:
    global _devices
    devices, _devices = _devices, ()
    for device in devices:
        device.close()


def _copy(options: Any) -> Any:
    duplicate = type(options)()
    duplicate.CopyFrom(options)
    return duplicate


atexit.register(_release)
