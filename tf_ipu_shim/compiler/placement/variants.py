"""Keeps TensorLists and other variants from crossing the boundary of an XLA program.

Gradients of loops keep one list a loop variable. If such a list would pass from one program to another, its ops run one
by one on their IPU, outside XLA, with TensorFlow's kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import Location, uncompiled_on
from tf_ipu_shim.compiler.placement.phases import assign_phases
from tf_ipu_shim.compiler.placement.placement import Placement


def uncompile_variants(graph: FunctionGraph, placement: Placement) -> Placement:
    """Moves ops on variants that would cross a program boundary out of XLA programs."""
    edges = list(_variant_edges(graph))
    if not edges and op_types.VARIANT not in (*graph.arguments.values(), *graph.return_types):
        return placement
    locations = dict(placement.locations)
    current = dataclasses.replace(placement, locations=locations)
    groups = _connected(graph, edges)
    for nodes in groups:
        if _crosses_boundary(graph, nodes):
            _move_out(locations, nodes)
    while True:
        phases = assign_phases(graph, current)
        crossing = {
            node
            for maker, user in edges
            if locations[maker] is not locations[user] or phases[maker] != phases[user]
            for node in (maker, user)
            if locations[node].is_in_program
        }
        if not crossing:
            return current
        for nodes in groups:
            if not crossing.isdisjoint(nodes):
                _move_out(locations, nodes)


def _move_out(locations: dict[Node, Location], nodes: Iterable[Node]) -> None:
    for node in nodes:
        location = locations.get(node)
        if location is not None and location.is_in_program and location.shard is not None:
            locations[node] = uncompiled_on(location.shard)


def _variant_edges(graph: FunctionGraph) -> Iterator[tuple[Node, Node]]:
    for node in graph.nodes:
        for tensor_name, producer in zip(node.inputs, node.producers):
            if producer is not None and graph.type_of(tensor_name) == op_types.VARIANT:
                yield producer, node


def _crosses_boundary(graph: FunctionGraph, nodes: set[Node]) -> bool:
    """Returns whether a variant enters or leaves through the function's own arguments or results."""
    crosses = any(
        producer is None and graph.type_of(tensor_name) == op_types.VARIANT
        for node in nodes
        for tensor_name, producer in zip(node.inputs, node.producers)
    )
    return crosses or any(
        kind == op_types.VARIANT and graph.producer(tensor_name) in nodes
        for tensor_name, kind in zip(graph.returns, graph.return_types)
    )


def _connected(graph: FunctionGraph, edges: list[tuple[Node, Node]]) -> list[set[Node]]:
    """Returns groups of nodes connected by variants that touch the function's boundary."""
    group_of: dict[Node, set[Node]] = {}

    def join(first: Node, second: Node) -> None:
        first_group, second_group = group_of.setdefault(first, {first}), group_of.setdefault(second, {second})
        if first_group is not second_group:
            small, large = sorted((first_group, second_group), key=len)
            large |= small
            group_of.update(dict.fromkeys(small, large))

    for maker, user in edges:
        join(maker, user)
    for node in graph.nodes:
        if any(
            p is None and graph.type_of(tensor_name) == op_types.VARIANT
            for tensor_name, p in zip(node.inputs, node.producers)
        ):
            join(node, node)
    return list({id(group): group for group in group_of.values()}.values())
