"""The graphs that functions were traced in, by name: they know the user's source line of each op.

Uses `Graph._functions`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import weakref
from typing import Any

_traced: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def remember(graph: Any) -> None:
    """Keeps the graph of a function by its name, for as long as it lives."""
    _traced[graph.name] = graph


def traced_graph(function_name: str) -> Any:
    """The graph of a traced function, or of a loop or branch in one; None once it is gone, or if it is another's."""
    if function_name in _traced:
        return _traced[function_name]
    for graph in list(_traced.values()):
        if function_name in graph._functions:
            # A function that TensorFlow was given as a definition alone has no graph.
            return getattr(graph._functions[function_name], "graph", None)
    return None
