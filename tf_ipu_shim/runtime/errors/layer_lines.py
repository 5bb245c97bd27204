"""Records the script lines that create Keras layers, for error messages.

Ops are told by their names, in which Keras has the layer's: `while/model/dense/MatMul`. The layer is known from the
graph in which it was called. Variables, and graphs without a known call, are found only by the layer's name.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from tf_ipu_shim.runtime.errors import script_files

_LINE = "_ipu_made_at"  # attribute of a layer
_made: dict[str, list[weakref.ReferenceType[Any]]] = {}  # layers by name
# By graph and name scope: the line of the layer that was called there; None where several of other lines were.
_called: weakref.WeakKeyDictionary[Any, dict[str, str | None]] = weakref.WeakKeyDictionary()
_graphs: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # the same graphs by name


def remember(layer: Any) -> None:
    """Records the script line that creates a layer; called by its constructor."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if script_files.is_users(code.co_filename) and not _is_constructor_of(layer, frame):
            object.__setattr__(layer, _LINE, f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}")
            alive = [reference for reference in _made.get(layer.name, ()) if reference() not in (None, layer)]
            _made[layer.name] = [*alive, weakref.ref(layer)]
            return
        frame = frame.f_back  # type: ignore[assignment]


def _is_constructor_of(layer: Any, frame: Any) -> bool:
    """Returns whether a frame is a constructor of the layer's own class, which a script may have written."""
    code = frame.f_code
    return code.co_name == "__init__" and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is layer


def note_call(layer: Any, graph: Any, scope: str) -> None:
    """Records that ops of a graph's name scope belong to a layer."""
    line = getattr(layer, _LINE, None)
    if line is not None:
        scopes = _called.setdefault(graph, {})
        if name := getattr(graph, "name", None):  # only functions' graphs have one
            _graphs[name] = graph
        scope = scope.rstrip("/")
        scopes[scope] = line if scopes.get(scope, line) == line else None


def graph_of(function: str) -> Any:
    """Returns the graph of a loop or branch function in which layers were called, or None."""
    return _graphs.get(function)


def line_of(name: str, graph: Any = None) -> str | None:
    """Returns the line of the innermost layer that an op or variable is named after."""
    scopes = {} if graph is None else _called.get(graph, {})
    parts = name.split("/")[:-1]
    for end in range(len(parts), 0, -1):
        scope = "/".join(parts[:end])
        if scope in scopes:
            return scopes[scope]
        lines = {
            getattr(layer, _LINE) for reference in _made.get(parts[end - 1], ()) if (layer := reference()) is not None
        }
        if lines:
            return lines.pop() if len(lines) == 1 else None
    return None
