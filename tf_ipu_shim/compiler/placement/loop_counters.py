"""Counters of loops: a handful of integer ops is no XLA program of its own.

The condition of a loop that is taken apart, and the step of its counter, would each be a launch in every iteration.
Such ops run with TensorFlow's kernels instead: a launch costs some ten times as much.
"""

from __future__ import annotations

import dataclasses

from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import alone_on
from tf_ipu_shim.compiler.placement.phases import clusters_of, phases_of
from tf_ipu_shim.compiler.placement.placement import Placement

_COUNTS = frozenset(
    "Add AddV2 Equal Greater GreaterEqual Identity Less LessEqual LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul "
    "NotEqual Sub".split()
)
_INTEGERS = frozenset({3, 9, 10})  # DT_INT32, DT_INT64, DT_BOOL
_MOST = 8


def without_counters(graph: FunctionGraph, placement: Placement) -> Placement:
    """Takes small XLA programs of integer ops apart.

    Args:
        graph: a function that runs in each iteration of a loop.
        placement: where its ops run.

    Returns:
        The placement with these ops alone on their IPU.
    """
    clusters = clusters_of(placement, phases_of(graph, placement))
    alone = {
        node: alone_on(ipu)
        for (ipu, _), nodes in clusters.items()
        if len(nodes) <= _MOST and all(_counts(graph, node) for node in nodes)
        for node in nodes
    }
    return dataclasses.replace(placement, locations={**placement.locations, **alone}) if alone else placement


def _counts(graph: FunctionGraph, node: Node) -> bool:
    return node.op in _COUNTS and all(graph.type_of(text) in _INTEGERS for text in node.inputs)
