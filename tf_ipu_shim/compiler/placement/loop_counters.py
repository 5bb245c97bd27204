"""Keeps loop-counter arithmetic out of separate XLA programs.

The condition of a loop that is decomposed, and the step of its counter, would each be a launch in every iteration.
Such ops run with TensorFlow's kernels instead: a launch costs some ten times as much.
"""

from __future__ import annotations

import dataclasses

from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import uncompiled_on
from tf_ipu_shim.compiler.placement.phases import assign_phases, group_clusters
from tf_ipu_shim.compiler.placement.placement import Placement

_COUNTS = frozenset(
    "Add AddV2 Equal Greater GreaterEqual Identity Less LessEqual LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul "
    "NotEqual Sub".split()
)
_INTEGERS = frozenset({3, 9, 10})  # DT_INT32, DT_INT64, DT_BOOL
_MOST = 8


def move_counters_to_host(graph: FunctionGraph, placement: Placement) -> Placement:
    """Moves small XLA programs of integer counter ops to the host."""
    clusters = group_clusters(placement, assign_phases(graph, placement))
    counter_locations = {
        node: uncompiled_on(ipu)
        for (ipu, _), nodes in clusters.items()
        if len(nodes) <= _MOST and all(_counts(graph, node) for node in nodes)
        for node in nodes
    }
    return (
        dataclasses.replace(placement, locations={**placement.locations, **counter_locations})
        if counter_locations
        else placement
    )


def _counts(graph: FunctionGraph, node: Node) -> bool:
    return node.op in _COUNTS and all(graph.type_of(tensor_name) in _INTEGERS for tensor_name in node.inputs)
