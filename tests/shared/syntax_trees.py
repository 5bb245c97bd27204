"""Syntax trees of the package's sources, parsed once for all tests of a process."""

from __future__ import annotations

import ast
import functools
import gc
import pathlib

from checkout import ROOT

PACKAGE = ROOT / "tf_ipu_shim"


@functools.cache
def trees() -> dict[pathlib.Path, ast.Module]:
    """The tree of each file, by path.

    They are half a million objects that live on: to search them for garbage takes longer than to parse the files.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
