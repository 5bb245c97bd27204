"""Lists the ops of a graph in the order in which the script has made them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tf_ipu_shim.frontend.tracing import inlined_calls
from tf_ipu_shim.tf_private.graphs import func_graph, ops


def script_order(graph: func_graph.FuncGraph) -> Iterator[ops.Operation]:
    """Yields ops as the script made them, but each after those that it waits for."""
    places = {op: place for place, op in enumerate(inlined_calls.live_ops(graph))}
    waits: dict[ops.Operation, int] = {}
    users: dict[ops.Operation, list[ops.Operation]] = {}
    for op in places:
        sources = {*(tensor.op for tensor in op.inputs), *op.control_inputs}
        waits[op] = len(sources)
        for source in sources:
            users.setdefault(source, []).append(op)
    ready = [(place, op) for op, place in places.items() if not waits[op]]
    while ready:
        _, op = heapq.heappop(ready)
        for user in users.get(op, ()):
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, (places[user], user))
        yield op
