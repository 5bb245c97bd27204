"""Counts a run's enqueues to each outfeed: a program that is only pre-compiled enqueues as many zeros."""

from __future__ import annotations

from collections import Counter

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.loops.trip_count import trip_count

_UNKNOWN_TRIPS = 1  # iterations of a loop whose number depends on values
_FALSE = -1  # the function of a branch that zero chooses: the last of an `If`'s two, the first of a `Case`'s


def count_enqueues(functions: Functions) -> dict[str, int]:
    """Returns the number of enqueues per outfeed in one run of a program."""
    if not any(vocabulary.OUTFEED_ENQUEUE in functions[name].ops for name in functions.reached()):
        return {}
    return dict(_count_enqueues(functions, functions.entry, {}))


def _count_enqueues(functions: Functions, name: str, known: dict[str, Counter[str]]) -> Counter[str]:
    if name in known:
        return known[name]
    sent = known[name] = Counter()
    graph = functions[name]
    for node in graph.nodes:
        if node.op == vocabulary.OUTFEED_ENQUEUE:
            sent[node.proto.attr["feed_id"].s.decode()] += 1
        elif node.op in vocabulary.LOOPS:
            count = trip_count(graph, node, functions)
            inside = _count_enqueues(functions, node.proto.attr["body"].func.name, known)
            for feed, enqueues in inside.items():
                sent[feed] += enqueues * (_UNKNOWN_TRIPS if count is None else count)
        elif node.op in vocabulary.FUNCTION_ATTRIBUTES:
            called = op_types.called_functions(node.proto)
            if node.op in vocabulary.BRANCHES:
                called = called[:1] if "Case" in node.op else called[_FALSE:]
            for callee in called:
                sent.update(_count_enqueues(functions, callee, known))
    return sent
