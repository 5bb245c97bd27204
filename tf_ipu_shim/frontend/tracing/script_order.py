"""Orders a graph's ops as the script made them, or in another order that their dependencies allow."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from tf_ipu_shim.frontend.tracing import inlined_calls
from tf_ipu_shim.tf_private.graphs import func_graph, ops


def script_order(graph: func_graph.FuncGraph) -> Iterator[ops.Operation]:
    """Yields ops as the script made them, but each after the ops that it waits for."""
    return as_the_script_lets(graph, inlined_calls.live_ops(graph))


def as_the_script_lets(graph: func_graph.FuncGraph, order: Iterable[Hashable]) -> Iterator[ops.Operation]:
    """Yields ops of a graph in a given order, but each after the ops that the script makes it wait for."""
    places = {node: place for place, node in enumerate(order)}
    count = itertools.count()
    waits: dict[Hashable, int] = {}
    users: dict[Hashable, list[Hashable]] = {}
    for node, sources in inlined_calls.waits(graph).items():
        waits[node] = len(sources)
        for source in sources:
            users.setdefault(source, []).append(node)

    def entry(node: Hashable) -> tuple[int, int, Any]:
        return places.get(node, -1), next(count), node  # one that has no place keeps none back

    ready = [entry(node) for node, number in waits.items() if not number]
    heapq.heapify(ready)
    while ready:
        place, _, node = heapq.heappop(ready)
        for user in users.get(node, ()):
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, entry(user))
        if place >= 0:
            yield node
