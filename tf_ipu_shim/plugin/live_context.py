"""Gives a running eager context the IPU devices it lacks, lists those that are configured, and tells which one it is.

TensorFlow fixes a context's device list when the context is first used. A notebook that ran an op before it imported
`ipu`, and a script that configures more devices later on, get theirs here. A context keeps a device for good; one that
a later configuration has no more, as in the next test of a process, is not listed. Uses `context._context_handle`,
`_logical_devices`, `_initialize_logical_devices` and `_initialize_physical_devices`; checked on TensorFlow 2.15.1 and
2.21.0.
"""

from __future__ import annotations

import ctypes


def extend(c_library: ctypes.CDLL, count: int = 1) -> None:
    """Adds the devices that the plugin has and the context has not. Does nothing before the context's first use.

    Args:
        c_library: the plugin.
        count: of the TensorFlow devices that are configured: so many are listed.

    Raises:
        RuntimeError: TensorFlow refuses the devices; its own message.
    """
    from tensorflow.python.eager import context as eager_context

    # `context()` would make one, and a context that was made eager keeps `init_scope` from finding the graph of a
    # script that calls `disable_v2_behavior` later.
    context = eager_context.context_safe()
    if context is None:
        return
    if context._physical_devices is not None:
        context._initialize_physical_devices(True)  # `reinitialize`: the list was read before the plugin was there
    handle = context._context_handle
    if handle is None:
        return
    context._initialize_logical_devices()  # those, too, that are not listed
    present = sum(device.device_type == "IPU" for device in context._logical_devices)
    c_library.ipu_extend_context.restype = ctypes.c_char_p
    c_library.ipu_extend_context.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    problem = c_library.ipu_extend_context(pointer_of(handle), present)
    if problem is not None:
        raise RuntimeError(f"TensorFlow does not take the IPU devices: {problem.decode()}")
    context._initialize_logical_devices()
    listed = {f"/device:IPU:{ordinal}" for ordinal in range(count)}
    context._logical_devices = [
        device for device in context._logical_devices if device.device_type != "IPU" or device.name in listed
    ]


def tell(c_library: ctypes.CDLL, call: int) -> None:
    """Tells a call of the lowering which eager context there is.

    Args:
        c_library: the plugin.
        call: its pointer to the call.
    """
    from tensorflow.python.eager import context as eager_context

    context = eager_context.context_safe()
    if context is not None and context._context_handle is not None:
        c_library.ipu_tell_context.restype = None
        c_library.ipu_tell_context.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        c_library.ipu_tell_context(call, pointer_of(context._context_handle))


def pointer_of(handle: object) -> int:
    """The plugin's pointer to an eager context, of `context._context_handle`."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(handle, None))
