"""Where a script makes its Keras layers: what `fit` runs is all made at one line, and a layer's at its own.

Ops are told by their names, in which Keras has the layer's: `while/model/dense/MatMul`.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from tf_ipu_shim.runtime import script_files

_made: dict[str, list[tuple[weakref.ReferenceType[Any], str]]] = {}  # by name: layers, and their lines


def remember(layer: Any) -> None:
    """Notes the line of the script that makes a layer; to be called by its constructor.

    Args:
        layer: it has its name.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if script_files.is_users(code.co_filename) and not _is_constructor_of(layer, frame):
            line = f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}"
            alive = [(other, where) for other, where in _made.get(layer.name, ()) if other() not in (None, layer)]
            _made[layer.name] = [*alive, (weakref.ref(layer), line)]
            return
        frame = frame.f_back  # type: ignore[assignment]


def _is_constructor_of(layer: Any, frame: Any) -> bool:
    """Whether a frame is a constructor of the layer's own class, which a script may have written."""
    code = frame.f_code
    return code.co_name == "__init__" and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is layer


def line_of(name: str) -> str | None:
    """The line of the innermost layer that an op or a variable is named after.

    Args:
        name: such as `gradient_tape/while/model/dense/MatMul/MatMul_1` or `dense/kernel`.

    Returns:
        Such as `"train.py:42, in <module>"`; None where no layer has such a name, or several of other lines have.
    """
    for part in reversed(name.split("/")[:-1]):
        lines = {where for layer, where in _made.get(part, ()) if layer() is not None}
        if lines:
            return lines.pop() if len(lines) == 1 else None
    return None
