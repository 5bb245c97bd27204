"""Builds the Poplar libraries when a script starts `make`, CMake, `popc`, or a compiler that links them.

Loads them before an extension module that is linked to them. The dynamic loader does not find them: it has read
`LD_LIBRARY_PATH` when the process started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.poplar_sdk.toolchain import build, environment, sources

_BUILDERS = frozenset({"make", "gmake", "cmake", "ninja", "popc"})
_LINKS_POPLAR = re.compile(r"(?:^|\s)-lpop")
_EVENTS = {"subprocess.Popen": 1, "os.system": 0, "os.posix_spawn": 1, "os.exec": 1, "os.spawn": 2}
"""Python's audit events that start a process, and which argument has the command's words."""
_LOADS = {"import": 1, "ctypes.dlopen": 0}
"""Audit events that load a shared library, and which argument has its path."""
_LINKED = re.compile(rb"\0lib(?:pop\w+|gcl)\.so\0")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", sys.base_prefix + os.sep)
_state = {"installed": False, "done": False, "loaded": False}


def install() -> None:
    """Sets the environment of processes that the script starts, and builds before the first that needs it."""
    with contextlib.suppress(errors.PluginError):  # told to who needs it
        os.environ.update(environment.variables(build.find_prefix()))
    if not _state["installed"]:
        _state["installed"] = True
        sys.addaudithook(_audit)


def _audit(
    event: str,
    arguments: tuple[Any, ...],
    positions: Mapping[str, int] = _EVENTS,
    loads: Mapping[str, int] = _LOADS,
    ending: Callable[[], bool] = sys.is_finalizing,
) -> None:
    """Holds the tables itself: events may arrive after the interpreter has cleared this module."""
    if event in loads and not ending() and not _state["loaded"] and is_linked(arguments[loads[event]]):
        _state["loaded"] = True
        _load_libraries()
    if event not in positions or _state["done"]:
        return
    if needs_libraries(arguments[positions[event]]):
        _state["done"] = True  # before the build, which starts processes itself
        try:
            build.ensure_built()
        except errors.PluginError as error:
            print(error, file=sys.stderr)


def is_linked(path: Any) -> bool:
    """Returns whether a shared library is linked to one of Poplar's; False for installed packages and other objects.

    Example:
        >>> is_linked("/nowhere/ops.so")
        False
    """
    if not isinstance(path, (str, bytes, os.PathLike)) or not os.fsdecode(path).endswith(".so"):
        return False
    if any(part in os.path.abspath(os.fsdecode(path)) for part in _INSTALLED):
        return False
    try:
        return _LINKED.search(pathlib.Path(os.fsdecode(path)).read_bytes()) is not None
    except OSError:
        return False


def _load_libraries() -> None:
    try:
        folder = build.ensure_built() / "lib"
        for library in sources.library_names():
            ctypes.CDLL(str(folder / sources.file_name(library)))
    except (errors.PluginError, OSError) as error:  # what is loaded next fails and names the library
        print(error, file=sys.stderr)


def needs_libraries(command: str | bytes | os.PathLike[str] | Sequence[Any]) -> bool:
    """Returns whether a command may link the libraries: a build tool, a shell script, or a compiler with `-lpop...`.

    Example:
        >>> needs_libraries("cd ops && make -j4"), needs_libraries(["g++", "x.cc"])
        (True, False)
    """
    if isinstance(command, (str, bytes, os.PathLike)):
        text = os.fsdecode(command)
    else:
        text = shlex.join(os.fsdecode(word) if isinstance(word, (str, bytes, os.PathLike)) else "" for word in command)
    words = [os.path.basename(word) for word in re.split(r"[\s;&|()'\"]+", text)]
    return any(word in _BUILDERS or word.endswith(".sh") for word in words) or bool(_LINKS_POPLAR.search(text))
