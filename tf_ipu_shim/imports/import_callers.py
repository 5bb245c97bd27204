"""Finds which code imports a module, and by which statement, from the call stack."""

from __future__ import annotations

import opcode
import pathlib
import sys
import sysconfig
import types

_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]
_INSTALLED = {"site-packages", "dist-packages"}
_IMPORTING = ("importlib.", "_frozen_importlib", "tf_ipu_shim.")


def is_import_from(frame: types.FrameType) -> bool:
    """Returns whether `frame` is in a `from module import name` statement.

    That statement replaces an AttributeError by a plain "cannot import name"; an ImportError passes with its message.
    """
    code = frame.f_code.co_code
    return frame.f_lasti >= 0 and code[frame.f_lasti] == _IMPORT_FROM


def is_module_imported() -> bool:
    """Returns whether a finder is called by an import, not by `importlib.util.find_spec`, in Python 3.9 to 3.13."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_find_spec":
        frame = frame.f_back
    asks = frame.f_back if frame is not None else None
    return asks is not None and asks.f_code.co_name == "_find_and_load_unlocked"


def is_imported_by_script() -> bool:
    """Returns whether a script imports, not an installed package that looks up the version."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_IMPORTING):
        frame = frame.f_back
    return frame is not None and is_script_file(frame.f_code.co_filename)


def is_script_file(file: str) -> bool:
    """Returns whether a file is a script's own: neither an installed package's nor Python's.

    Example:
        >>> is_script_file("train.py"), is_script_file(pathlib.__file__)
        (True, False)
    """
    path = pathlib.PurePath(file)
    return not (_INSTALLED.intersection(path.parts) or path.is_relative_to(sysconfig.get_path("stdlib")))
