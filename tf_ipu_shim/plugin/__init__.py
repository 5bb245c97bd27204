"""Loads the C++ plugin: the IPU device inside TensorFlow, its kernels, arenas and counters."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library

_lock = threading.Lock()
_library: Library | None = None


def load() -> Library:
    """Returns the plugin, built and loaded at the first call in a process.

    Example:
        >>> load().live_bytes(ordinal=0, chip=0) >= 0
        True
    """
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                from tf_ipu_shim.plugin import build, library

                _library = library.open_library(build.ensure_built)
    return _library
