"""Returns the environment variables and compiler flags by which builds find the Poplar libraries and `popc`."""

from __future__ import annotations

import os
import pathlib
import shlex
from collections.abc import Mapping

from tf_ipu_shim.poplar_sdk.toolchain import prefix_files

_FOLDERS = {
    "PATH": "bin",
    "CPATH": "include",
    "LIBRARY_PATH": "lib",
    "LD_LIBRARY_PATH": "lib",
    "PKG_CONFIG_PATH": "lib/pkgconfig",
    "CMAKE_PREFIX_PATH": "",
    "COMPILER_PATH": "libexec",  # where g++ looks for its compiler first
}


def variables(prefix: pathlib.Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the search paths with the folder's parts first; a path that has them is unchanged.

    Example:
        >>> variables(pathlib.Path("/cache/poplar"), {"PATH": "/usr/bin"})["PATH"]
        '/cache/poplar/bin:/usr/bin'
    """
    found = {}
    for name, folder in _FOLDERS.items():
        place = str(prefix / folder)
        before = [entry for entry in environment.get(name, "").split(os.pathsep) if entry and entry != place]
        found[name] = os.pathsep.join([place, *before])
    return found


def shell_lines(prefix: pathlib.Path) -> str:
    """Returns lines for `eval` in a POSIX shell.

    Example:
        >>> shell_lines(pathlib.Path("/cache/poplar")).splitlines()[0]
        'export PATH=/cache/poplar/bin${PATH:+:$PATH}'
    """
    return "\n".join(
        f"export {name}={shlex.quote(str(prefix / folder))}${{{name}:+:${name}}}" for name, folder in _FOLDERS.items()
    )


def compiler_flags(prefix: pathlib.Path) -> str:
    """Returns the flags with which a C++ compiler finds the headers."""
    return f"-I{shlex.quote(str(prefix / 'include'))}"


def linker_flags(prefix: pathlib.Path) -> str:
    """Returns the flags that link all libraries; a function that none of them has is an error of the linker."""
    lib = shlex.quote(str(prefix / "lib"))
    names = " ".join(f"-l{name}" for name in prefix_files.link_names())
    return f"-L{lib} -Wl,-rpath,{lib} -Wl,-z,defs {names}"
