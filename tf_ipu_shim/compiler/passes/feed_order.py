"""Keeps feed ops in program order, and delays side effects until an iteration's feed elements have arrived.

TensorFlow orders ops on one resource. A feed is found by its name, so that nothing orders two loops on it: their
iterations would share the elements. Ops that do not depend on an element could run after the dataset's end. So an
iteration's side effects wait for its elements, and iterations with feeds follow each other. Programs of IPUs wait as a
whole when they are emitted. An op with its own wait would be put into another program than the ops that it belongs to.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.tf_private.protos import node_def_pb2

_FEEDS = vocabulary.INFEEDS | {vocabulary.OUTFEED_ENQUEUE, vocabulary.SEND_TO_HOST}
_INFEED, _OUTFEED, _ARGUMENT = "infeed", "outfeed", "argument"
_ANY_INFEED = (_INFEED, "")  # one whose name is not known
_HANDLES = frozenset({vocabulary.ITERATOR, "VarHandleOp"})  # stateful, and all they do is to name a resource

# Identity of a feed: its kind and name, or its argument's index.
Feed = tuple[str, "str | int"]


def order_feeds(functions: Functions) -> None:
    """Orders ops that use feeds, and delays an iteration's side effects until its elements arrive."""
    feeds = _FeedUses(functions)
    fed = functions.with_ops(_FEEDS)
    bodies = {node.proto.attr["body"].func.name for name in fed for node in functions[name].nodes if _is_loop(node)}
    for name in functions.reached():
        if name in fed:
            functions.add(_ordered(functions[name], feeds, name in bodies))


def _is_loop(node: Node) -> bool:
    return node.op in vocabulary.LOOPS


class _FeedUses:
    """Finds the feeds that ops and functions use."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._function_feeds: dict[str, frozenset[Feed]] = {}

    def feeds_of(self, graph: FunctionGraph, node: Node) -> frozenset[Feed]:
        """Returns the feeds that an op uses, directly or in functions it runs."""
        if node.op in vocabulary.INFEEDS:
            return frozenset({_infeed(graph, node.inputs[0])})
        if node.op == vocabulary.OUTFEED_ENQUEUE:
            return frozenset({(_OUTFEED, node.proto.attr["feed_id"].s.decode())})
        if node.op == vocabulary.SEND_TO_HOST:
            return frozenset({(_OUTFEED, f"to host: {node.proto.attr['tensor_name'].s.decode()}")})
        used: set[Feed] = set()
        for called in op_types.called_functions(node.proto):
            for feed in self._feeds_of_function(called) if called in self._functions else ():
                kind, feed_id = feed
                used.add(_infeed(graph, node.function_inputs[int(feed_id)]) if kind == _ARGUMENT else feed)
        return frozenset(used)

    def _feeds_of_function(self, name: str) -> frozenset[Feed]:
        if name not in self._function_feeds:
            self._function_feeds[name] = frozenset()  # for recursive functions
            graph = self._functions[name]
            self._function_feeds[name] = frozenset[Feed]().union(*(self.feeds_of(graph, node) for node in graph.nodes))
        return self._function_feeds[name]


def _infeed(graph: FunctionGraph, handle: str) -> Feed:
    """Returns the infeed of an iterator handle."""
    producer = graph.producer(handle)
    while producer is not None and producer.op in vocabulary.IDENTITIES:
        handle = producer.inputs[0]
        producer = graph.producer(handle)
    if producer is None:
        return _ARGUMENT, list(graph.arguments).index(handle)
    attributes = producer.proto.attr
    if producer.op != vocabulary.ITERATOR or not attributes["shared_name"].s:
        return _ANY_INFEED
    return _INFEED, f"{attributes['container'].s.decode()}/{attributes['shared_name'].s.decode()}"


def _ordered(graph: FunctionGraph, feeds: _FeedUses, is_body: bool) -> FunctionGraph:
    """Returns the function with its feed uses ordered."""
    used = {node: feed_set for node in graph.nodes if (feed_set := feeds.feeds_of(graph, node))}
    order = _script_order(graph)
    added = _previous_uses([node for node in order if node in used], used)
    elements = [node for node, feed_set in used.items() if _dequeues(node, feed_set, is_body)]
    before = _needed_by(elements, added)
    for node in order:
        if node not in before and op_types.is_stateful(node.op) and not _waits_elsewhere(node):
            added.setdefault(node, {}).update(dict.fromkeys(elements))
    protos = [_changed(node, added.get(node, ()), node in used) for node in order]
    controls = [node.name for node in graph.control_returns]
    new_graph = FunctionGraph(graph.name, graph.arguments, protos, graph.results, controls, graph.traced)
    new_graph.annotations, new_graph.argument_attributes = graph.annotations, graph.argument_attributes
    return new_graph


def _waits_elsewhere(node: Node) -> bool:
    """Returns whether an op uses a variable or an iterator: IPU programs wait as a whole (`emit`)."""
    return node.op in _HANDLES or op_types.RESOURCE in op_types.input_types(node.proto)


def _dequeues(node: Node, feeds: frozenset[Feed], is_body: bool) -> bool:
    """Returns whether an op returns the elements of a run, or of an iteration in a loop's body."""
    if all(kind == _OUTFEED for kind, _ in feeds):
        return False
    return is_body or node.op in vocabulary.INFEEDS | vocabulary.CALLS


def _script_order(graph: FunctionGraph) -> list[Node]:
    """Returns the ops in the order the script made them, as far as dependencies allow."""
    if graph.source is None:
        return graph.nodes
    position_of = {proto.name: position for position, proto in enumerate(graph.source.node_def)}
    missing = {node: len(set(node.predecessors())) for node in graph.nodes}
    ready = [(position_of[node.name], node.index) for node, count in missing.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        node = graph.nodes[heapq.heappop(ready)[1]]
        order.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (position_of[user.name], user.index))
    return order


def _previous_uses(order: Sequence[Node], used: Mapping[Node, frozenset[Feed]]) -> dict[Node, dict[Node, None]]:
    """Maps each op to the previous ones on the same feeds."""
    one_for_all = any(_ANY_INFEED in feeds for feeds in used.values())
    last: dict[Feed, Node] = {}
    added: dict[Node, dict[Node, None]] = {}
    for node in order:
        for kind, feed_id in sorted(used[node], key=str):
            feed = _ANY_INFEED if one_for_all and kind != _OUTFEED else (kind, feed_id)
            if feed in last and last[feed] is not node:
                added.setdefault(node, {})[last[feed]] = None
            last[feed] = node
    return added


def _needed_by(nodes: Iterable[Node], added: Mapping[Node, Mapping[Node, None]]) -> set[Node]:
    """Returns some ops and everything they depend on."""
    pending = list(nodes)
    needed = set(pending)
    while pending:
        node = pending.pop()
        for predecessor in (*node.predecessors(), *added.get(node, ())):
            if predecessor not in needed:
                needed.add(predecessor)
                pending.append(predecessor)
    return needed


def _changed(node: Node, controls: Iterable[Node], uses_feeds: bool) -> node_def_pb2.NodeDef:
    """Returns an op with further control inputs; the same NodeDef if nothing changes."""
    present = set(node.controls) | set(node.producers)
    tensor_names = [f"^{control.name}" for control in controls if control not in present]
    one_by_one = uses_feeds and _is_loop(node)
    if not tensor_names and not one_by_one:
        return node.proto
    new_node = copy_node(node.proto)
    new_node.input.extend(tensor_names)
    if one_by_one:
        new_node.attr["parallel_iterations"].i = 1
    return new_node
