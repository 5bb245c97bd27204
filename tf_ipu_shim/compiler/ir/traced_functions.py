"""Keeps the FuncGraphs of traced functions by name, to look up the user's source lines of ops.

Uses `Graph._functions`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import weakref
from typing import Any

from tf_ipu_shim.tf_private import graphs as tf_graphs

_traced: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def remember(graph: Any) -> None:
    """Registers a function's graph by its name, for as long as the graph lives."""
    _traced[graph.name] = graph


def traced_graph(function_name: str) -> Any:
    """Returns the graph of a traced function, loop or branch, or None if it no longer exists."""
    if function_name in _traced:
        return _traced[function_name]
    for graph in list(_traced.values()):
        if function_name in tf_graphs.functions_by_name(graph):
            # A function that TensorFlow received only as a definition has no graph.
            return getattr(tf_graphs.functions_by_name(graph)[function_name], "graph", None)
    return None
