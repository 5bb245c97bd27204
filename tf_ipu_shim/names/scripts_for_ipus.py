"""Whether an import comes from a script that is written for IPUs, before it has imported `ipu`.

Scripts import `horovod.tensorflow` or `tensorflow.contrib` in their first lines, and `ipu` in a later one. A stock
script that looks whether there is such a package must not find ours. So the files whose imports are under way are
looked at: where one of them imports a module of Graphcore's, it is a script for IPUs.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Callable


def importing(is_theirs: Callable[[str], bool]) -> bool:
    """Whether a file that is being imported, or the script, imports one of certain modules somewhere.

    Args:
        is_theirs: tells whether a module, by its full name, is one of them.

    Example:
        >>> importing(lambda name: name == "popdist")
        False
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and any(map(is_theirs, _imports(frame.f_code.co_filename))):
            return True
        frame = frame.f_back
    return False


@functools.cache
def _imports(file: str) -> frozenset[str]:
    """What a file's import statements name, in full; nothing where it is no file, or none of Python's."""
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
