"""Finds everything reachable from start nodes along edges (callers, called functions, users of variables)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.tf_private.protos import function_pb2


def reachable(start: Iterable[str], edges: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Returns the start items and all that edges lead to, each once, in order of discovery.

    Example:
        >>> list(reachable(["a"], {"a": ["b", "c"], "b": ["a"], "c": []}.__getitem__))
        ['a', 'b', 'c']
    """
    visited = dict.fromkeys(start)
    pending = list(visited)
    while pending:
        for successor in edges(pending.pop()):
            if successor not in visited:
                visited[successor] = None
                pending.append(successor)
    return visited


def reached_functions(library: Mapping[str, function_pb2.FunctionDef], entry: str) -> list[str]:
    """Returns a function and those it runs, itself first."""
    return list(
        reachable(
            [entry],
            lambda name: [
                called
                for node in library[name].node_def
                for called in op_types.called_functions(node)
                if called in library
            ],
        )
    )
