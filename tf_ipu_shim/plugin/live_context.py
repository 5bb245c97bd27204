"""Adds and lists IPU devices in TensorFlow's live eager context.

Before a process configures its devices, TensorFlow lists one for each IPU of the system, as Graphcore's TensorFlow
does. Scripts branch on that count. `/device:IPU:0` is the only one that runs ops then. A configuration's devices are
listed in their place.

TensorFlow fixes a context's devices when the context is first used. A notebook that ran an op before it imported `ipu`,
and a script that configures more devices later on, get theirs here. A context keeps a device for good, but does not
list it after a later configuration without it. Uses `context._context_handle`, `_context_devices`, `_device_lock`,
`_logical_devices`, `_physical_devices`, `_physical_device_to_index`, `_visible_device_list`,
`_initialize_logical_devices` and `_initialize_physical_devices`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.machine import systems

_WHY = "TensorFlow lists an IPU device for each IPU of the system, or for each that is configured"
_configured: int | None = None
"""Devices of the configuration; None before one."""


def install(c_library: ctypes.CDLL) -> None:
    """Patches TensorFlow's contexts to list the system's IPU devices, or the configured ones."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    context = tf_eager.context.Context
    listing = functools.partial(_patch_physical_devices, c_library)
    patches.replace(context, "_initialize_physical_devices", listing, why=_WHY)
    patches.replace(context, "_initialize_logical_devices", _patch_logical_devices, why=_WHY)


def list_configured_devices(c_library: ctypes.CDLL, count: int | None) -> None:
    """Says how many devices are configured, and makes a context that is in use list them."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    global _configured
    _configured = count
    with contextlib.suppress(ValueError):  # a system that there is not is refused when it is asked for
        c_library.ipu_set_listed_device_count(listed_device_count())
        context = _present_context()
        if context is not None and tf_eager.context_handle(context) is not None:
            tf_eager.list_logical_devices(context)


def add_devices(c_library: ctypes.CDLL) -> None:
    """Adds the devices that the plugin has and the context has not. Does nothing before the context's first use."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    context = _present_context()
    if context is None or tf_eager.context_handle(context) is None:
        return
    tf_eager.list_logical_devices(context)
    present = sum(":IPU:" in name for name in tf_eager.context_devices(context))
    c_library.ipu_extend_context.restype = ctypes.c_char_p
    c_library.ipu_extend_context.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    problem = c_library.ipu_extend_context(pointer_of(tf_eager.context_handle(context)), present)
    if problem is not None:
        raise RuntimeError(f"TensorFlow does not take the IPU devices: {problem.decode()}")
    tf_eager.list_logical_devices(context)


def _patch_physical_devices(c_library: ctypes.CDLL, stock: Callable[..., None]) -> Callable[..., None]:
    """Returns the method that looks for physical devices, and finds the devices to list now."""

    @functools.wraps(stock)
    def method(self: Any, reinitialize: bool = False) -> None:
        from tf_ipu_shim.tf_private import eager as tf_eager

        c_library.ipu_set_listed_device_count(listed_device_count())
        stock(self, reinitialize)
        with self._device_lock:
            if sum(device.device_type == "IPU" for device in self._physical_devices) != listed_device_count():
                tf_eager.list_physical_devices_again(self)

    return method


def _patch_logical_devices(stock: Callable[..., None]) -> Callable[..., None]:
    """Returns the method that lists logical devices, extended by the IPUs to list at present."""

    @functools.wraps(stock)
    def method(self: Any) -> None:
        import tensorflow.compat.v2 as tf

        stock(self)
        job = _job_of(self)
        other_devices = [device for device in self._logical_devices if not device.name.startswith(f"{job}/device:IPU:")]
        names = [f"{job}/device:IPU:{ordinal}" for ordinal in range(len(self.get_visible_devices("IPU")))]
        self._logical_devices = other_devices + [tf.config.LogicalDevice(name, "IPU") for name in names]

    return method


def _job_of(context: Any) -> str:
    """Returns the job prefix of a context's device names."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    server = tf_eager.server_of(context)
    return "" if server is None else f"/job:{server.job_name}/replica:0/task:{server.task_index}"


def listed_device_count() -> int:
    """Returns the number of IPU devices that TensorFlow lists."""
    return systems.current().num_ipus if _configured is None else _configured


def _present_context() -> Any:
    """Returns the context of this process, if it has one.

    `context()` would make one, and a context that was made eager keeps `init_scope` from finding the graph of a script
    that calls `disable_v2_behavior` later.
    """
    from tf_ipu_shim.tf_private import eager as tf_eager

    return tf_eager.context.context_safe()


def set_eager_context(c_library: ctypes.CDLL, call: int) -> None:
    """Passes the process' eager context to a call of the lowering."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    context = _present_context()
    if context is not None and tf_eager.context_handle(context) is not None:
        c_library.ipu_tell_context.restype = None
        c_library.ipu_tell_context.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        c_library.ipu_tell_context(call, pointer_of(tf_eager.context_handle(context)))


def pointer_of(handle: object) -> int:
    """Returns the plugin's pointer to an eager context, of `context._context_handle`."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(handle, None))
