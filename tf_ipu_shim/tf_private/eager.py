"""Imports TensorFlow internals of eager execution: the context, gradient tapes and op execution."""

from __future__ import annotations

from typing import Any

from tensorflow.python import (
    pywrap_tfe,  # TensorFlow's C API for eager execution
    tf2,  # whether TensorFlow behaves as version 2
)
from tensorflow.python.eager import (
    backprop,  # GradientTape and the function that it asks for gradients
    context,  # the context: devices, modes, the handle that the plugin takes
    core,  # the file whose frames tracebacks leave out
    execute,  # execute.execute, which is patched for Ctrl-C
)
from tensorflow.python.ops import (
    custom_gradient,  # custom_gradient with variables found
    gradients_impl,  # gradients in a graph, of TensorFlow 1 too
    gradients_util,  # gradients between given graphs
)


def context_handle(eager_context: context.Context) -> Any:
    """Returns the C API's handle; None before the context is used."""
    return eager_context._context_handle


def list_logical_devices(eager_context: context.Context) -> None:
    """Has the context list its logical devices."""
    eager_context._initialize_logical_devices()


def context_devices(eager_context: context.Context) -> Any:
    """Returns the names of the context's devices."""
    return eager_context._context_devices


gradient_function = backprop._gradient_function  # what the tape asks for gradients, which is wrapped


def list_physical_devices_again(eager_context: context.Context) -> None:
    """Lists a context's physical devices again; other devices that a script has hidden stay hidden."""
    hidden = set(eager_context._physical_devices) - set(eager_context._visible_device_list)
    names = [name.decode() for name in pywrap_tfe.TF_ListPhysicalDevices()]
    devices = [context.PhysicalDevice(name, name.split(":")[1]) for name in names]
    eager_context._physical_devices = devices
    eager_context._physical_device_to_index = {device: index for index, device in enumerate(devices)}
    visible = [device for device in devices if device.device_type == "IPU" or device not in hidden]
    eager_context._visible_device_list = visible


def server_of(eager_context: context.Context) -> Any:
    """Returns the server of a context, which names its devices; None without a cluster."""
    return eager_context._server_def or eager_context._collective_ops_server_def
