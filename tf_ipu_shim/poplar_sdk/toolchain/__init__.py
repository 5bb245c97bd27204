"""Builds the Poplar libraries once, in a folder where Makefiles find them, the headers and the compiler `popc`."""

from __future__ import annotations

import pathlib


def build_libraries(*, directory: pathlib.Path | None = None) -> pathlib.Path:
    """Returns the folder of the built Poplar libraries; compiles missing or damaged ones.

    Two processes that need them at once build them once; the second waits.

    Args:
        directory: the cache directory to use instead of the plugin's.

    Returns:
        The folder with `lib/`, `include/` and `bin/`.

    Raises:
        PluginError: the compiler is missing or fails, or other users can write to every cache directory.

    Example:
        >>> (build_libraries() / "lib" / "libpoplar.so").exists()
        True
    """
    from tf_ipu_shim.poplar_sdk.toolchain import build

    return build.ensure_built(directory)
