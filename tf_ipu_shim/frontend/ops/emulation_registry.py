"""Registers TensorFlow functions that emulate the ops of a shared library, by file name or path."""

from __future__ import annotations

import dataclasses
import filecmp
import os
from collections.abc import Callable
from typing import Any

_LAMBDA = "<lambda>"


@dataclasses.dataclass
class Emulation:
    """A registered function.

    Args:
        library: the file name or path under which the library was registered.
        op: prefix of the library's functions; empty for all of its ops.
        gradient: a function for its gradient; None for TensorFlow's own.
        used_by: the library that it stood for; another one of the same name is refused.
    """

    library: str
    op: str
    function: Callable[..., Any]
    gradient: Callable[..., Any] | None
    used_by: str = ""

    @property
    def name(self) -> str:
        """The name it was registered under."""
        return f"{self.library}:{self.op}" if self.op else self.library


emulations: dict[tuple[str, str], Emulation] = {}
"""Those of this process, by path and op."""


def parse_name(name: Any) -> tuple[str, str]:
    """Returns the library and the op that a name means.

    Example:
        >>> parse_name("build/libproduct.so:BuildSum"), parse_name("./libproduct.so")
        (('build/libproduct.so', 'BuildSum'), ('libproduct.so', ''))
    """
    path = os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""
    library, colon, op = path.rpartition(":") if isinstance(path, str) else ("", "", "")
    if not colon or "/" in op:
        library, op = str(path), ""
    if not os.path.basename(library):
        raise ValueError(
            f"register_emulation(name={name!r}): expected a library's file name or path, such as 'libproduct.so' or "
            "'build/libproduct.so', or 'libproduct.so:BuildSum' for one of its ops. Pass one of these."
        )
    library = os.path.normpath(library)
    return os.path.abspath(library) if library.startswith("..") else library, op


def register_emulation(emulation: Emulation) -> None:
    """Registers an emulation, and replaces one of the same name."""
    key = emulation.library, emulation.op
    registered = emulations.get(key)
    if (
        registered is not None
        and "/" not in emulation.library
        and not _is_same_function(registered.function, emulation.function)
    ):
        raise ValueError(
            f"register_emulation({emulation.name!r}): another function is registered under this file "
            "name, and only one can be. If there are two libraries of this name, register each by its "
            f"path, such as 'DIRECTORY/{emulation.name}'. To replace the function, call "
            f"register_emulation({emulation.name!r}, None) first."
        )
    emulations[key] = emulation


def find_emulation(path: str, op: str) -> Emulation | None:
    """Returns the emulation of an op: of the longest matching path, and for this op before one for all ops."""
    fitting = [
        emulation
        for emulation in emulations.values()
        if emulation.op in (op, "") and _matches_path(path, emulation.library)
    ]
    if not fitting:
        return None
    best_match = max(
        fitting,
        key=lambda candidate: (os.path.isabs(candidate.library), candidate.library.count("/"), candidate.op == op),
    )
    _check_library(best_match, path)
    return best_match


def _is_same_function(registered: Callable[..., Any], candidate: Callable[..., Any]) -> bool:
    """Returns whether a function is the registered one, or was defined by the same statement of a script."""
    if registered is candidate or registered == candidate:
        return True
    codes = [function.__code__ for function in (registered, candidate) if hasattr(function, "__code__")]
    if len(codes) < 2:
        return False
    locations = [(code.co_filename, code.co_firstlineno, code.co_name) for code in codes]
    names = [(function.__module__, function.__qualname__) for function in (registered, candidate)]
    return locations[0] == locations[1] or (names[0] == names[1] and _LAMBDA not in names[0][1])


def _matches_path(path: str, registered: str) -> bool:
    """Returns whether a library's path is a registered one, or ends with it."""
    if os.path.isabs(registered):
        return os.path.realpath(path) == os.path.realpath(registered)
    return any(f"/{full}".endswith(f"/{registered}") for full in (os.path.abspath(path), os.path.realpath(path)))


def _check_library(emulation: Emulation, path: str) -> None:
    library = os.path.realpath(path)
    if emulation.used_by and emulation.used_by != library and not _is_same_file(emulation.used_by, library):
        raise ValueError(
            f"precompiled_user_op({path!r}): the emulation registered as {emulation.name!r} stands for "
            f"{emulation.used_by} already, and can only stand for one library. Register each by its path: "
            f"ipu.custom_ops.register_emulation({path!r}, ...)."
        )
    emulation.used_by = library


def _is_same_file(registered: str, library: str) -> bool:
    """Returns whether two files have the same content, as a library that is built again elsewhere."""
    return os.path.isfile(registered) and os.path.isfile(library) and filecmp.cmp(registered, library, shallow=False)
