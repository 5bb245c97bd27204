"""Which TensorFlow devices this process has configured.

There is one configuration at a time. Every function may be called from any thread; after an exception nothing is
configured and nothing attached, so that the next call starts afresh.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tf_ipu_shim.machine.environment import engine_options, flags
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.plugin.library import APPLICATION_DEVICES, MAXIMUM_DEVICES
from tf_ipu_shim.profiling import settings
from tf_ipu_shim.runtime import ignored_options, log, trace
from tf_ipu_shim.runtime.device import ALWAYS, ON_DEMAND, IpuDevice
from tf_ipu_shim.runtime.requests import requested

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library


def _load_plugin() -> Library:
    from tf_ipu_shim import plugin

    return plugin.load()


load_library: Callable[[], Any] = _load_plugin
"""Gives the plugin; tests put a stand-in here."""

_lock = threading.RLock()
_options: Any = None
_devices: tuple[IpuDevice, ...] = ()
_applications: dict[int, IpuDevice] = {}


def configure(options: Any) -> None:
    """Makes this process's TensorFlow devices, and attaches them if the connection type says so.

    An equal configuration that is active already stays as it is.

    Args:
        options: an `IpuOptions`; it is copied.

    Raises:
        tf.errors.FailedPreconditionError: if another configuration is active, or the system has no device with so
            many IPUs.
        tf.errors.InvalidArgumentError: if the system has no device with a chosen id.
        tf.errors.InternalError: if all fitting devices are in use.
        ValueError: if the options name a chip that there is none of, or too many tiles or devices.

    Source: `tensorflow.compiler.plugin.poplar` (C++ driver), docs/facts.md, section "Choosing and attaching
        devices".

    Example:
        >>> options = config_pb2.IpuOptions()
        >>> options.device_config.add().auto_count = 4
        >>> configure(options)
        >>> get(0).poplar_id
        24
    """
    global _options
    options = _in_force(options)
    with _lock:
        if _options is not None:
            if _options == options:
                return
            from tensorflow.compat.v2 import errors

            raise errors.FailedPreconditionError(
                None,
                None,
                "IPU system configuration can only be set once. Call ipu.config.reset_ipu_configuration() before "
                "configuring it anew.",
            )
        _release()
        _start(_copy(options))
        _options = options
        load_library().list_devices(len(_devices))


def reset() -> None:
    """Detaches from all IPUs and forgets the configuration; nothing happens when there is none.

    Programs are lowered again when they next run.
    """
    global _options
    with _lock:
        active = _options is not None or bool(_devices)
        _options = None
        _release()
        if active:
            load_library().list_devices(None)
            load_library().new_epoch()


def configured() -> Any:
    """A copy of the active `IpuOptions`; None when nothing was configured."""
    with _lock:
        return None if _options is None else _copy(_options)


def count() -> int:
    """Number of TensorFlow devices; 1 when nothing was configured, as then there will be the default one."""
    return len(_devices) or 1


def active() -> tuple[IpuDevice, ...]:
    """The TensorFlow devices there are now; none before the first use, and after a reset."""
    return _devices


def applications() -> tuple[IpuDevice, ...]:
    """The devices of embedded applications."""
    return tuple(_applications.values())


def get(ordinal: int = 0, attach: bool = True) -> IpuDevice:
    """The TensorFlow device with this number, attached if it ever is.

    When nothing is configured, `/device:IPU:0` is made with a single IPU.

    Args:
        ordinal: the number in `/device:IPU:<ordinal>`.
        attach: attach it now if it is not yet; waits if the connection is on demand.

    Returns:
        The device.

    Raises:
        tf.errors.InvalidArgumentError: if there is no such device.
        tf.errors.InternalError: if its IPUs are in use.
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
            f"There is no TensorFlow device /device:IPU:{ordinal}: configured are {names}. Give `auto_select_ipus` "
            "or `select_ipus` one entry for each TensorFlow device, or use ipu.scopes.ipu_shard for the IPUs of one.",
        )
    if attach:
        # Outside the lock: an on-demand device may wait for an hour, and others must be able to work, or to reset.
        devices[ordinal].attach()
    return devices[ordinal]


def named(ordinal: int) -> IpuDevice:
    """The TensorFlow device of a strategy, without attaching to an on-demand one.

    Where it is none of those that are configured, it is made with a single IPU and the other options in force, and so
    are those before it.

    Args:
        ordinal: the number in `/device:IPU:<ordinal>`.

    Raises:
        tf.errors.InvalidArgumentError: there cannot be so many.
        tf.errors.InternalError: no IPU is free for it.
    """
    with _lock:
        get(0, attach=False)
        own = config_pb2.IpuOptions() if _options is None else _copy(_options)
        own.ClearField("device_config")
        while len(_devices) <= ordinal < MAXIMUM_DEVICES:
            _add(load_library(), requested(own, len(_devices)))
        if _options is not None:
            load_library().list_devices(len(_devices))
        return get(ordinal, attach=False)


def add_application(options: Any, num_ipus: int) -> IpuDevice:
    """Makes and attaches a device for an embedded application, beside those that are configured.

    Args:
        options: the `IpuOptions` that it was compiled under; which IPUs it gets, and when, is decided here.
        num_ipus: how many it needs.

    Returns:
        The device. It keeps its IPUs until it is taken away: `reset` does not touch it.

    Raises:
        tf.errors.FailedPreconditionError: the system has no device with so many IPUs.
        tf.errors.InternalError: all fitting devices are in use.
        tf.errors.ResourceExhaustedError: there are too many applications.
    """
    library = load_library()
    own = _copy(options)
    own.ClearField("device_config")
    own.device_config.add().auto_count = num_ipus
    own.device_connection_type = ALWAYS
    with _lock:
        free = [ordinal for ordinal in APPLICATION_DEVICES if ordinal not in _applications]
        if not free:
            from tensorflow.compat.v2 import errors

            raise errors.ResourceExhaustedError(
                None, None, f"There can be {len(APPLICATION_DEVICES)} embedded engines in a process, and all run."
            )
        (device,) = requested(own, first=free[0])
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
    """Takes the device of an embedded application away, and frees its IPUs."""
    with _lock:
        _applications.pop(device.ordinal, None)
    device.close()


def _start(options: Any) -> None:
    library = load_library()
    devices = requested(options)
    log.poplar_version()
    ignored_options.note(devices[0].recorded_options(), engine_options.likely_misspelt(devices[0].engine_options))
    _add(library, devices)


def _add(library: Library, added: Sequence[IpuDevice]) -> None:
    """Attaches devices, and has TensorFlow have them beside those that there are."""
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


def _in_force(options: Any) -> Any:
    """A copy of options with the flag that changes them."""
    copied = _copy(options)
    if flags.current().use_on_demand:
        copied.device_connection_type = ON_DEMAND
    return copied


def _watch_plain_ops(library: Library, device: IpuDevice) -> None:
    profiling = device.options.profiling
    has_transfers = profiling.enable_ipu_trace_events and profiling.enable_io_trace
    if has_transfers or settings.asked_for(device.engine_options):
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
