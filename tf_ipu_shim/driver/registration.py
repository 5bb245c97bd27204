"""Gives the plugin the function that lowers its programs, without importing it: that is a third of importing `ipu`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Call, Library
    from tf_ipu_shim.runtime.device import IpuDevice


def install(library: Library, device_of: Callable[[int, bool], IpuDevice]) -> None:
    """Has the plugin lower its programs with `driver.entry`.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal; the second argument says whether to attach to its IPUs.
    """

    def lower(call: Call, request: bytes) -> bytes:
        from tf_ipu_shim.driver import entry  # when the first program runs

        with _without_garbage_collection():
            return entry.lower_bytes(library, device_of, call, request)

    library.set_lowering(lower)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Lowering makes many objects that all live until it ends.

    Collections on the way find nothing, and walk through everything that TensorFlow has in memory: they would take a
    third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
