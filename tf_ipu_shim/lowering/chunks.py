"""Loops of small iterations: several iterations in one XLA program.

Where a loop takes from an infeed or sends to an outfeed, each iteration is at least one launch and some host ops, which
cost more than a small model itself. If nothing else leaves the IPU, such a loop becomes a loop over chunks: the host
fetches elements for the next iterations at once, an XLA program runs these iterations as a loop of its own, and the
host hands on what they sent. How many there are in a chunk follows from their speed (`chunk_ops.cc`).

A dataset that ends or fails within a chunk does so after the iterations before it, as without chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import dtypes

from tf_ipu_shim.lowering import marks, op_types, vocabulary
from tf_ipu_shim.lowering.chunk_functions import Feeds, chunked
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.location import ALL_IPUS
from tf_ipu_shim.lowering.origins import Origins
from tf_ipu_shim.lowering.placement import Placer
from tf_ipu_shim.lowering.trip_count import trip_count

_MOST_ITERATIONS = 64
_MOST_BYTES = 8 << 20  # of elements that are fetched at once
# XLA runs convolutions within a loop by plain code instead of its library: many times slower.
_SLOW_IN_LOOPS = frozenset(
    f"{kind}{direction}"
    for kind in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
    for direction in ("", "BackpropFilter", "BackpropInput", "BackpropFilterV2", "BackpropInputV2")
)
_UNFIT = frozenset({dtypes.string, dtypes.resource, dtypes.variant})

Library = Mapping[str, function_pb2.FunctionDef]


def with_chunks(
    library: Library, function: str, graphs: Mapping[str, FunctionGraph], placer: Placer, origins: Origins
) -> Library | None:
    """The functions with their loops over chunks.

    Args:
        library: all functions by name.
        function: the one that is called.
        graphs: the same, parsed.
        placer: tells what runs on the host, and what on which IPU.
        origins: names the new functions.

    Returns:
        All functions by name; None where no loop is changed.
    """
    changed: dict[str, function_pb2.FunctionDef] = {}
    waiting, seen = [function], {function}
    while waiting:
        graph = graphs[waiting.pop()]
        for node in graph.nodes:
            called = op_types.called_functions(node.proto)
            feeds = _feeds(graph, node, graphs, placer) if node.op in vocabulary.LOOPS else None
            if feeds is not None:
                changed.update(chunked(changed.get(graph.name, library[graph.name]), node, graphs, feeds, origins))
            else:
                waiting.extend(name for name in called if name not in seen)
                seen.update(called)
    return {**library, **changed} if changed else None


def _feeds(graph: FunctionGraph, loop: Node, graphs: Mapping[str, FunctionGraph], placer: Placer) -> Feeds | None:
    """The feeds of a loop that can run in chunks; None for any other."""
    body = graphs[loop.proto.attr["body"].func.name]
    infeeds = [node for node in body.nodes if node.op in vocabulary.INFEEDS]
    outfeeds = [node for node in body.nodes if node.op == vocabulary.OUTFEED_ENQUEUE]
    iterators = [node for node in body.nodes if node.op == vocabulary.ITERATOR]
    if len(infeeds) > 1 or not (infeeds or outfeeds) or op_types.VARIANT in body.arguments.values():
        return None
    feeds = {*infeeds, *outfeeds, *iterators}
    if not _on_one_ipu(loop, [node for node in body.nodes if node not in feeds], placer):
        return None
    total = trip_count(graph, loop, graphs)
    sizes = [_element_bytes(node) for node in (*infeeds, *outfeeds)]
    if total is None or total < 2 or None in sizes or not _can_be_fetched_first(body, infeeds):
        return None
    if any(node.op in _SLOW_IN_LOOPS for node in _all_nodes(body, graphs)):
        return None
    size = max(1, sum(size for size in sizes if size is not None))
    most = min(total, _MOST_ITERATIONS, _MOST_BYTES // size)
    return Feeds(infeeds, outfeeds, iterators, total, most) if most > 1 else None


def _on_one_ipu(loop: Node, nodes: Iterable[Node], placer: Placer) -> bool:
    """Whether what a loop runs may be in one XLA program."""
    mark = marks.shard_of(loop.proto)
    wanted = frozenset(() if mark is None else {mark}).union(*map(placer.marks_at, nodes)) - {ALL_IPUS}
    return len(wanted) <= 1 and all(location.is_in_program for location in wanted)


def _all_nodes(graph: FunctionGraph, graphs: Mapping[str, FunctionGraph]) -> Iterator[Node]:
    """The ops of a function and of those that it runs."""
    waiting, seen = [graph], {graph.name}
    while waiting:
        for node in waiting.pop().nodes:
            yield node
            called = [name for name in op_types.called_functions(node.proto) if name not in seen]
            seen.update(called)
            waiting.extend(graphs[name] for name in called)


def _can_be_fetched_first(body: FunctionGraph, infeeds: list[Node]) -> bool:
    """Whether the element waits for nothing that the iteration does, and its iterator is the same in each."""
    for node in infeeds:
        source = node.producers[0]
        if node.controls or (source is not None and (source.op != vocabulary.ITERATOR or source.controls)):
            return False
        if source is None and body.returns[list(body.arguments).index(node.inputs[0])] != node.inputs[0]:
            return False
    return True


def _element_bytes(node: Node) -> int | None:
    """Bytes of what a feed hands over in an iteration; None where that is not known, or no plain memory."""
    attributes = node.proto.attr
    shapes, types = attributes["output_shapes"].list.shape, attributes["output_types"].list.type
    size = 0
    for shape, kind in zip(shapes, types):
        sizes = [dimension.size for dimension in shape.dim]
        if shape.unknown_rank or any(dimension < 0 for dimension in sizes) or dtypes.as_dtype(kind) in _UNFIT:
            return None
        size += math.prod(sizes) * dtypes.as_dtype(kind).size
    return size if len(shapes) == len(types) else None
