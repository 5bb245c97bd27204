"""Lists a program's infeeds and outfeeds with the dtypes and shapes of their elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Union

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.tf_private.protos import function_pb2

Origin = Union[int, str, None]
"""Where a tensor comes from: an argument of the program, an iterator of that name, or anything else."""


@dataclasses.dataclass(frozen=True)
class Feed:
    """An infeed or outfeed of a program.

    Args:
        id: the iterator's name, or the feed id; empty for an iterator that is an argument.
        argument: the program's argument that the iterator is; None for one with a name.
        types: `DataType` of each tensor of an element.
        shapes: a `TensorShapeProto` of each.
    """

    id: str
    argument: int | None
    types: Sequence[int]
    shapes: Sequence[Any]


def find_feeds(function: str, library: Mapping[str, function_pb2.FunctionDef]) -> tuple[list[Feed], list[Feed]]:
    """Returns the infeeds and the outfeeds of a program, in the order in which its ops name them."""
    walk = _FeedCollector(library)
    walk.visit(function, tuple(range(len(library[function].signature.input_arg))))
    return list(walk.infeeds.values()), list(walk.outfeeds.values())


class _FeedCollector:
    """Collects feeds from a function and the functions it calls."""

    def __init__(self, library: Mapping[str, function_pb2.FunctionDef]) -> None:
        self.infeeds: dict[Origin, Feed] = {}
        self.outfeeds: dict[str, Feed] = {}
        self._library = library
        self._seen: set[tuple[str, tuple[Origin, ...]]] = set()
        self._graphs: dict[str, FunctionGraph] = {}

    def visit(self, name: str, arguments: tuple[Origin, ...]) -> None:
        """Visits a function, given which program argument each of its arguments is."""
        if (name, arguments) in self._seen or name not in self._library:
            return
        self._seen.add((name, arguments))
        if name not in self._graphs:
            self._graphs[name] = FunctionGraph.parse(self._library[name])
        graph = self._graphs[name]
        origins: dict[str, Origin] = dict(zip(graph.arguments, arguments))
        for node in graph.nodes:
            argument_indices = [origins.get(tensor_name) for tensor_name in node.inputs]
            if node.op == vocabulary.ITERATOR:
                origins[f"{node.name}:handle:0"] = node.proto.attr["shared_name"].s.decode() or None
            elif node.op in vocabulary.IDENTITIES and argument_indices:
                origins[f"{node.name}:output:0"] = argument_indices[0]
            elif node.op in vocabulary.INFEEDS:
                self._infeed(node, argument_indices[0])
            elif node.op == vocabulary.OUTFEED_ENQUEUE:
                feed_id = node.proto.attr["feed_id"].s.decode()
                self.outfeeds.setdefault(feed_id, _feed(feed_id, None, node))
            elif node.op in vocabulary.FUNCTION_ATTRIBUTES:
                passed = tuple(argument_indices[1:] if node.op in vocabulary.BRANCHES else argument_indices)
                for called in op_types.called_functions(node.proto):
                    self.visit(called, passed)

    def _infeed(self, node: Node, origin: Origin) -> None:
        named = isinstance(origin, str)
        argument = origin if isinstance(origin, int) else None
        self.infeeds.setdefault(origin, _feed(str(origin) if named else "", argument, node))


def _feed(feed_id: str, argument: int | None, node: Node) -> Feed:
    attributes = node.proto.attr
    return Feed(
        feed_id, argument, list(attributes["output_types"].list.type), list(attributes["output_shapes"].list.shape)
    )
