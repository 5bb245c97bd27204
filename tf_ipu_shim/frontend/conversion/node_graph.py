"""A directed graph of named nodes with the part of `networkx.DiGraph`'s interface that scripts use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class NodeGraph:
    """Nodes with attributes, and edges between them.

    `networkx`'s read-only functions (`is_empty`, `is_directed`) accept it: scripts that use them on Graphcore's graphs
    run, and this package does not need `networkx`.

    Example:
        >>> graph = NodeGraph()
        >>> graph.add_node("a", size=1), graph.add_node("b", size=2), graph.add_edge("a", "b")
        (None, None, None)
        >>> list(graph["a"]), graph.nodes["b"]["size"]
        (['b'], 2)
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self._adj: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def adj(self) -> dict[str, dict[str, dict[str, Any]]]:
        """For each node its successors."""
        return self._adj

    def add_node(self, name: str, **attributes: Any) -> None:
        """Adds a node."""
        self.nodes[name] = attributes
        self._adj.setdefault(name, {})

    def add_edge(self, source: str, target: str) -> None:
        """Adds an edge between two nodes of the graph."""
        self._adj[source][target] = {}

    def is_directed(self) -> bool:
        """Returns whether edges have a direction: they have."""
        return True

    def __getitem__(self, name: str) -> dict[str, dict[str, Any]]:
        return self._adj[name]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self.nodes


def topological_order(graph: NodeGraph, names: Iterable[str], key: Callable[[str], Any] | None = None) -> list[str]:
    """Some nodes of a graph, each behind its predecessors, chains kept together."""
    pending = dict.fromkeys(names)
    finished: dict[str, None] = {}
    open_: set[str] = set()
    for root in sorted(pending, key=key) if key else pending:
        waiting = [(root, False)]
        while waiting:
            name, is_done = waiting.pop()
            if is_done:
                finished[name] = None
                open_.discard(name)
            elif name in open_:
                raise ValueError(
                    f"The graph has a cycle through {name}: loops cannot be cut into pipeline stages. Remove the loop "
                    "from the part that is split."
                )
            elif name not in finished:
                open_.add(name)
                waiting.append((name, True))
                following = [
                    successor for successor in graph[name] if successor in pending and successor not in finished
                ]
                waiting += [
                    (successor, False) for successor in reversed(sorted(following, key=key) if key else following)
                ]
    return list(reversed(finished))
