"""Gives the plugin the function that lowers its programs, without importing it: that is a third of importing `ipu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Call, Library
    from tf_ipu_shim.runtime.device import IpuDevice


def install(library: Library, device_of: Callable[[int], IpuDevice]) -> None:
    """Has the plugin lower its programs with `lowering.entry`.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal, attached to its IPUs.
    """

    def lower(call: Call, request: bytes) -> bytes:
        from tf_ipu_shim.lowering import entry  # when the first program runs

        return entry.lower_bytes(library, device_of, call, request)

    library.set_lowering(lower)
