"""Loads the plugin when a script names an IPU device without importing a Graphcore module.

Graphcore's TensorFlow has the device from the start: `tf.device("/device:IPU:0")` is all that a small script says.
TensorFlow would put its ops on the CPU, or find no such device when the session runs.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.names import early_sessions

_IPU = re.compile(r"(^|/|device:)IPU(:|$)", re.IGNORECASE)
_WHY = "a script that names an IPU device has one, also where it does not import `ipu`"
_LISTS = ("list_physical_devices", "list_logical_devices", "get_visible_devices", "list_local_devices")
# By module: the class, if any, and its functions whose arguments name devices, or that list them; of sessions, what is
# told of each.
_METHODS = {
    "tensorflow.python.client.device_lib": (None, _LISTS[-1:]),
    "tensorflow.python.client.session": ("BaseSession", ("__init__",)),
    "tensorflow.python.eager.context": ("Context", ("device", *_LISTS[:-1])),
    "tensorflow.python.framework.ops": ("Graph", ("device",)),
}
# Imported with `tensorflow.python.ipu`; it loads the plugin.
_LOADED = "tf_ipu_shim.frontend"


def install_with_tensorflow() -> None:
    """Patches TensorFlow so that the script finds the IPU device that it names."""
    for name in _METHODS:
        if name in sys.modules:
            _install(sys.modules[name])
    _with_tensorflow.install("devices by name", why=_WHY)


def _install(module: types.ModuleType) -> None:
    owner, methods = _METHODS[module.__name__]
    for name in methods:
        around = _patch_early_method if name == "__init__" else _patch_ensure_device
        patches.replace(getattr(module, owner) if owner else module, name, around, why=_WHY)


def _patch_early_method(construct: Callable[..., None]) -> Callable[..., None]:
    """Returns a session's constructor that notes those which are made before an IPU is named."""
    noted = early_sessions.patch_session_init(construct)

    @functools.wraps(construct)
    def method(self: Any, *arguments: Any, **keywords: Any) -> None:
        (construct if _LOADED in sys.modules else noted)(self, *arguments, **keywords)

    return method


def _patch_ensure_device(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose arguments name devices, or a type of devices, or one that lists devices of all types."""
    lists = stock.__name__ in _LISTS

    @functools.wraps(stock)
    def method(*arguments: Any, **keywords: Any) -> Any:
        if _LOADED not in sys.modules and _mentions_ipu((*arguments, *keywords.values()), lists):
            importlib.import_module("tensorflow.python.ipu")
            early_sessions.rebuild_sessions()
        return stock(*arguments, **keywords)

    return method


def _mentions_ipu(arguments: tuple[Any, ...], lists: bool) -> bool:
    """Returns whether one of the arguments names IPUs; without a name a function that lists devices means IPUs too."""
    named = [argument for argument in arguments if isinstance(argument, str) or hasattr(argument, "to_string")]
    return any(map(_is_ipu_name, named)) or (lists and not named)


def _is_ipu_name(name: Any) -> bool:
    """Returns whether a device's name, as a string or a `DeviceSpec`, or a type of devices refers to IPUs.

    Example:
        >>> [_is_ipu_name(name) for name in ("/device:IPU:0", "IPU", "/job:ipu/device:CPU:0", None)]
        [True, True, False, False]
    """
    device_name = name.to_string() if hasattr(name, "to_string") else name
    return isinstance(device_name, str) and _IPU.search(device_name) is not None


_with_tensorflow = post_import_hooks.PostImportFinder(_METHODS.__contains__, _install)
