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


def note_origin(copy: Any, op: Any) -> None:
    """Notes which op, of another graph, an op is the copy of: the script has made that one."""
    if not hasattr(copy.graph, "_ipu_origins"):
        copy.graph._ipu_origins = {}
    copy.graph._ipu_origins[copy.name] = op


def traceback_of(graph: Any, name: str) -> Any:
    """Returns the stack in which the script has made an op; None if nothing is known of it."""
    origin = getattr(graph, "_ipu_origins", {}).get(name)
    if origin is not None:
        return traceback_of(origin.graph, origin.name)
    return tf_graphs.creation_stack(graph.get_operation_by_name(name))


def traced_graph(function_name: str) -> Any:
    """Returns the graph of a traced function, loop or branch, or None if it no longer exists."""
    if function_name in _traced:
        return _traced[function_name]
    for graph in list(_traced.values()):
        if function_name in tf_graphs.functions_by_name(graph):
            # A function that TensorFlow received only as a definition has no graph.
            return getattr(tf_graphs.functions_by_name(graph)[function_name], "graph", None)
    return None
