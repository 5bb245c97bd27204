"""Decides whether an import comes from an IPU script that has not imported `ipu` yet.

Scripts import `horovod.tensorflow` or `tensorflow.contrib` in their first lines, and `ipu` in a later one. A stock
script that checks whether such a package exists must not find ours. So the files that are being imported are read: if
one of them imports a module of Graphcore's, it is a script for IPUs. It counts as one if another file in its folder
imports `ipu`: often only some files of a program or its tests do.
"""

from __future__ import annotations

import ast
import functools
import os
import pathlib
import sys
import types
from collections.abc import Callable, Iterator

from tf_ipu_shim.imports import import_callers

_MOST_NEIGHBOURS = 200  # a folder with more files is no program's


def is_importing_ipu(is_theirs: Callable[[str], bool]) -> bool:
    """Returns whether the imported file, the script, or a file next to one of them imports one of certain modules.

    Example:
        >>> is_importing_ipu(lambda name: name == "popdist")
        False
    """
    if is_import_in_progress(is_theirs):
        return True
    scripts = {
        pathlib.Path(file)
        for file in _executing_files()
        if import_callers.is_script_file(file) and os.path.isfile(file)
    }
    folders = {script.parent for script in scripts}
    return any(
        is_theirs(name) for folder in folders for file in _scripts_in_folder(folder) for name in _imported_modules(file)
    )


def is_import_in_progress(is_theirs: Callable[[str], bool]) -> bool:
    """Works like `is_importing_ipu`, without the files next to them.

    Example:
        >>> is_import_in_progress(lambda name: name == "popdist")
        False
    """
    return any(is_theirs(name) for file in _executing_files() for name in _imported_modules(file))


def _executing_files() -> Iterator[str]:
    """Yields the files whose top-level statements are being executed."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            yield frame.f_code.co_filename
        frame = frame.f_back


def _scripts_in_folder(folder: pathlib.Path) -> list[str]:
    try:
        files = [str(file) for file in sorted(folder.iterdir()) if file.suffix == ".py"]
    except OSError:  # of code that was in no file
        return []
    return files if len(files) <= _MOST_NEIGHBOURS else []


@functools.cache
def _imported_modules(file: str) -> frozenset[str]:
    """Returns the full names that a Python file imports; empty for other files."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)
