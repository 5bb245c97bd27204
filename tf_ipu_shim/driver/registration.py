"""Registers the lowering callback with the plugin, importing the driver only at first use."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Call, Library
    from tf_ipu_shim.runtime.device import IpuDevice


def register_lowering(library: Library, device_of: Callable[[int, bool], IpuDevice]) -> None:
    """Makes the plugin lower its programs by `driver.entry`."""

    def lower(call: Call, request: bytes) -> bytes:
        from tf_ipu_shim.driver import entry  # when the first program runs

        with _without_garbage_collection():
            return entry.lower_bytes(library, device_of, call, request)

    library.set_lowering(lower)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pauses garbage collection: lowering creates many objects that live until it ends.

    Collections meanwhile would find nothing. They would use a third of the time, to walk through TensorFlow's objects.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
