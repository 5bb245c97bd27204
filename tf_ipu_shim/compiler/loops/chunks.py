"""Runs several iterations of a small loop in one XLA program (chunking).

If a loop has an infeed or outfeed, each iteration is at least one launch and some host ops. These cost more than a
small model. If nothing else leaves the IPU, such a loop becomes a loop over chunks. The host fetches elements for the
next iterations at once, an XLA program runs these iterations, and the host passes on their outputs. How many there are
in a chunk follows from their speed (`chunk_ops.cc`).

A dataset that ends or fails within a chunk does so after the iterations before it, as without chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.location import ALL_IPUS, Location
from tf_ipu_shim.compiler.loops.chunk_functions import Feeds, build_chunk_functions
from tf_ipu_shim.compiler.loops.trip_count import find_trips
from tf_ipu_shim.compiler.placement.placement import Placer

_MAX_ITERATIONS = 64
_MAX_BYTES = 8 << 20  # of elements that are fetched at once
# XLA runs convolutions within a loop by plain code instead of its library: many times slower.
_SLOW_IN_LOOPS = frozenset(
    f"{kind}{direction}"
    for kind in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
    for direction in ("", "BackpropFilter", "BackpropInput", "BackpropFilterV2", "BackpropInputV2")
)
_UNSTACKABLE_TYPES = frozenset({dtypes.string, dtypes.resource, dtypes.variant})


def chunk_loops(functions: Functions, placer: Placer) -> None:
    """Chunks the loops that allow it.

    Such a loop keeps its functions, of one iteration: the memory plan counts these. `Node.chunks` names the functions
    that run.
    """
    pending, seen = [functions.entry], {functions.entry}
    while pending:
        graph = functions[pending.pop()]
        for node in graph.nodes:
            if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
                continue
            feeds = _feeds(graph, node, functions, placer) if node.op in vocabulary.LOOPS else None
            if feeds is not None:
                node.chunks = build_chunk_functions(node, functions, feeds)
            else:
                called = [name for name in op_types.called_functions(node.proto) if name not in seen]
                seen.update(called)
                pending.extend(called)


def _feeds(graph: FunctionGraph, loop: Node, functions: Functions, placer: Placer) -> Feeds | None:
    """Returns the feeds of a loop that can run in chunks, or None."""
    body = functions[loop.proto.attr["body"].func.name]
    if body.ops.isdisjoint(vocabulary.INFEEDS | {vocabulary.OUTFEED_ENQUEUE}):
        return None
    infeeds = [node for node in body.nodes if node.op in vocabulary.INFEEDS]
    outfeeds = [node for node in body.nodes if node.op == vocabulary.OUTFEED_ENQUEUE]
    iterators = [node for node in body.nodes if node.op == vocabulary.ITERATOR]
    trips = find_trips(graph, loop, functions)
    size = _iteration_bytes([*infeeds, *outfeeds])
    if trips is None or size is None or not _can_be_fetched_first(body, infeeds):
        return None
    marked = _annotated_locations(body, {*infeeds, *outfeeds, *iterators}, placer) | {graph.annotations.get(loop.name)}
    if not _on_one_ipu(marked) or not _is_fast_in_a_loop(body, functions):
        return None
    max_iterations = _MAX_ITERATIONS if trips.most < 0 else trips.most
    most = min(max_iterations, _MAX_ITERATIONS, _MAX_BYTES // size)
    return Feeds(infeeds, outfeeds, iterators, trips, most) if most > 1 else None


def _annotated_locations(body: FunctionGraph, feeds: set[Node], placer: Placer) -> frozenset[Location]:
    """Returns the locations that a loop body's ops, except its feeds, are annotated with."""
    return frozenset[Location]().union(*(placer.annotations_at(body, node) for node in body.nodes if node not in feeds))


def _on_one_ipu(marked: Iterable[Location | None]) -> bool:
    """Returns whether ops with these annotations can be in one XLA program."""
    required = [location for location in marked if location is not None and location is not ALL_IPUS]
    return len(required) <= 1 and all(location.is_in_program for location in required)


def _is_fast_in_a_loop(body: FunctionGraph, functions: Functions) -> bool:
    """Returns whether XLA runs a loop's body inside a program as fast as in a separate one."""
    if op_types.VARIANT in body.arguments.values():
        return False
    pending, seen = [body], {body.name}
    while pending:
        graph = pending.pop()
        if not graph.ops.isdisjoint(_SLOW_IN_LOOPS):
            return False
        called = [name for name in graph.called if name not in seen]
        seen.update(called)
        pending.extend(functions[name] for name in called)
    return True


def _can_be_fetched_first(body: FunctionGraph, infeeds: Sequence[Node]) -> bool:
    """Returns whether each iteration dequeues one element, unconditionally and from the same iterator."""
    if len(infeeds) > 1:
        return False
    for node in infeeds:
        source = node.producers[0]
        if node.controls or (source is not None and (source.op != vocabulary.ITERATOR or source.controls)):
            return False
        if source is None and body.returns[list(body.arguments).index(node.inputs[0])] != node.inputs[0]:
            return False
    return True


def _iteration_bytes(feeds: Sequence[Node]) -> int | None:
    """Returns the feed bytes of an iteration (at least 1), or None if unknown or without feeds."""
    sizes = [_element_bytes(node) for node in feeds]
    if not sizes or None in sizes:
        return None
    return max(1, sum(size for size in sizes if size is not None))


def _element_bytes(node: Node) -> int | None:
    """Returns the bytes of a feed's element, or None if unknown."""
    attributes = node.proto.attr
    shapes, types = attributes["output_shapes"].list.shape, attributes["output_types"].list.type
    size = 0
    for shape, kind in zip(shapes, types):
        sizes = [dimension.size for dimension in shape.dim]
        if (
            shape.unknown_rank
            or any(dimension < 0 for dimension in sizes)
            or dtypes.as_dtype(kind) in _UNSTACKABLE_TYPES
        ):
            return None
        size += math.prod(sizes) * dtypes.as_dtype(kind).size
    return size if len(shapes) == len(types) else None
