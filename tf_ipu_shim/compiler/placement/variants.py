"""TensorLists and other variants: they cannot cross the border of an XLA program.

Gradients of loops keep one list a loop variable. Where such a list would go from one program to another, the ops that
touch it run one by one on their IPU, outside XLA, with TensorFlow's own kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import Location, alone_on
from tf_ipu_shim.compiler.placement.phases import phases_of
from tf_ipu_shim.compiler.placement.placement import Placement


def loosen(graph: FunctionGraph, placement: Placement) -> Placement:
    """Takes out of the XLA programs what handles variants that would have to leave them.

    Args:
        graph: the function.
        placement: where its ops are.

    Returns:
        The placement with these ops alone on their IPU.
    """
    edges = list(_variant_edges(graph))
    if not edges and op_types.VARIANT not in (*graph.arguments.values(), *graph.return_types):
        return placement
    locations = dict(placement.locations)
    current = dataclasses.replace(placement, locations=locations)
    groups = _connected(graph, edges)
    for nodes in groups:
        if _touches_border(graph, nodes):
            _leave_programs(locations, nodes)
    while True:
        phases = phases_of(graph, current)
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
                _leave_programs(locations, nodes)


def _leave_programs(locations: dict[Node, Location], nodes: Iterable[Node]) -> None:
    for node in nodes:
        location = locations.get(node)
        if location is not None and location.is_in_program and location.ipu is not None:
            locations[node] = alone_on(location.ipu)


def _variant_edges(graph: FunctionGraph) -> Iterator[tuple[Node, Node]]:
    for node in graph.nodes:
        for text, producer in zip(node.inputs, node.producers):
            if producer is not None and graph.type_of(text) == op_types.VARIANT:
                yield producer, node


def _touches_border(graph: FunctionGraph, nodes: set[Node]) -> bool:
    """Whether a variant comes in, or goes out, with the function's own arguments and results."""
    taken = any(
        producer is None and graph.type_of(text) == op_types.VARIANT
        for node in nodes
        for text, producer in zip(node.inputs, node.producers)
    )
    return taken or any(
        kind == op_types.VARIANT and graph.producer(text) in nodes
        for text, kind in zip(graph.returns, graph.return_types)
    )


def _connected(graph: FunctionGraph, edges: list[tuple[Node, Node]]) -> list[set[Node]]:
    """Groups of nodes that variants connect, with those that take or give one at the function's border."""
    group_of: dict[Node, set[Node]] = {}

    def join(first: Node, second: Node) -> None:
        one, other = group_of.setdefault(first, {first}), group_of.setdefault(second, {second})
        if one is not other:
            small, large = sorted((one, other), key=len)
            large |= small
            group_of.update(dict.fromkeys(small, large))

    for maker, user in edges:
        join(maker, user)
    for node in graph.nodes:
        if any(p is None and graph.type_of(text) == op_types.VARIANT for text, p in zip(node.inputs, node.producers)):
            join(node, node)
    return list({id(group): group for group in group_of.values()}.values())
