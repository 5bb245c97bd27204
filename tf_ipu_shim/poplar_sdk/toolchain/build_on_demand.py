"""Builds the Poplar libraries when a script starts `make`, CMake, `popc`, or a compiler that links them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.poplar_sdk.toolchain import build, environment

_BUILDERS = frozenset({"make", "gmake", "cmake", "ninja", "popc"})
_LINKS_POPLAR = re.compile(r"(?:^|\s)-lpop")
_EVENTS = {"subprocess.Popen": 1, "os.system": 0, "os.posix_spawn": 1, "os.exec": 1, "os.spawn": 2}
"""Python's audit events that start a process, and which argument has the command's words."""
_state = {"installed": False, "done": False}


def install() -> None:
    """Sets the environment of processes that the script starts, and builds before the first that needs it."""
    with contextlib.suppress(errors.PluginError):  # told to who needs it
        os.environ.update(environment.variables(build.find_prefix()))
    if not _state["installed"]:
        _state["installed"] = True
        sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...], positions: Mapping[str, int] = _EVENTS) -> None:
    """Holds the table itself: events may arrive after the interpreter has cleared this module."""
    if event not in positions or _state["done"]:
        return
    if needs_libraries(arguments[positions[event]]):
        _state["done"] = True  # before the build, which starts processes itself
        try:
            build.ensure_built()
        except errors.PluginError as error:
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
