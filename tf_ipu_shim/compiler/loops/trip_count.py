"""Computes a loop's trip count, at compile time or from values known when the loop begins."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.node_defs import result_index
from tf_ipu_shim.compiler.ir.trips import Limit, Trips
from tf_ipu_shim.tf_private.protos import types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_PASSES_ON = vocabulary.IDENTITIES | {"Cast"}
_WHOLE_NUMBERS = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64})
_LARGEST = 2**31 - 1  # of an int32: what is beyond it may have wrapped around on the way
_DEEPEST = 8  # ops after each other: more than a `tf.range` has, and few enough to look at each way
# What AutoGraph computes the length of a `tf.range` with.
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "AddV2": operator.add,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Maximum": max,
    "NotEqual": operator.ne,
    "Sub": operator.sub,
}


def trip_count(graph: FunctionGraph, loop: Node, graphs: Mapping[str, FunctionGraph]) -> int | None:
    """Returns the trip count of a loop that counts up to a constant, else None."""
    around = _Loop.of(graph, loop, graphs)
    counts = [_count(around.cond, test, around) for test in _conjuncts(around.cond, around.cond.returns[0])]
    return min((count for count in counts if count is not None), default=None) if None not in counts else None


def find_trips(graph: FunctionGraph, loop: Node, graphs: Mapping[str, FunctionGraph]) -> Trips | None:
    """Returns how a loop's trip count follows from values known when it begins, or None."""
    around = _Loop.of(graph, loop, graphs)
    known: list[int] = []
    limits: list[Limit] = []
    for test in _conjuncts(around.cond, around.cond.returns[0]):
        count = _count(around.cond, test, around)
        limit = _limit_at_begin(around.cond, test, around) if count is None else None
        if count is not None:
            known.append(count)
        elif limit is not None:
            limits.append(limit)
        else:
            return None
    return Trips(min(known, default=-1), tuple(limits))


class _Loop:
    """A loop with the constants around it and in it."""

    def __init__(
        self,
        graph: FunctionGraph,
        loop: Node,
        cond: FunctionGraph,
        body: FunctionGraph,
        graphs: Mapping[str, FunctionGraph],
    ) -> None:
        self.cond = cond
        self._graph = graph
        self._graphs = graphs
        self._loop = loop
        self._cond = list(cond.arguments)
        self._body = body

    @classmethod
    def of(cls, graph: FunctionGraph, loop: Node, graphs: Mapping[str, FunctionGraph]) -> _Loop:
        """Creates the description of a loop op."""
        cond, body = (graphs[loop.proto.attr[name].func.name] for name in ("cond", "body"))
        return cls(graph, loop, cond, body, graphs)

    def initial(self, argument: int) -> int | None:
        """Returns the constant initial value of a loop variable, or None."""
        text, producer = _source(self._graph, self._loop.inputs[argument])
        if producer is not None and producer.op in vocabulary.LOOPS and producer is not self._loop:
            return self._final_counter(text, producer)
        return _computed(self._graph, text)

    def _final_counter(self, text: str, before: Node) -> int | None:
        """Returns the final counter of another loop: a backward loop runs as many times as its forward loop."""
        count = trip_count(self._graph, before, self._graphs)
        if count is None:
            return None
        loop = _Loop.of(self._graph, before, self._graphs)
        argument = result_index(text)
        first, step = loop.initial(argument), loop.step(argument)
        return None if first is None or step is None else first + count * step

    def argument(self, text: str) -> int | None:
        """Returns the index of a loop variable, by its name in the condition."""
        return self._cond.index(text) if text in self._cond else None

    def step(self, argument: int) -> int | None:
        """Returns the increment of a loop variable per iteration; 0 for an invariant one, None if unknown."""
        own = list(self._body.arguments)[argument]
        text, producer = _source(self._body, self._body.returns[argument])
        if text == own:
            return 0
        if producer is None or producer.op not in ("AddV2", "Add"):
            return None
        sides = [_source(self._body, side) for side in producer.inputs]
        for (one, _), other in zip(sides, reversed(producer.inputs)):
            if one == own:
                return self._increment(other)
        return None

    def counts_by_ones(self, argument: int) -> bool:
        """Whether a loop variable increases by one per iteration."""
        producer = self._body.producer(_skip_identities(self._body, self._body.returns[argument]))
        if producer is None or producer.op not in ("AddV2", "Add"):
            return False
        own, sides = list(self._body.arguments)[argument], producer.inputs
        return any(
            _skip_identities(self._body, one) == own and self._increment(other) == 1
            for one, other in zip(sides, sides[::-1])
        )

    def is_invariant(self, argument: int) -> bool:
        """Whether a loop variable is invariant."""
        return _skip_identities(self._body, self._body.returns[argument]) == list(self._body.arguments)[argument]

    def _increment(self, text: str) -> int | None:
        """Returns a constant in the body, or the initial value of an invariant loop variable."""
        text, _ = _source(self._body, text)
        arguments = list(self._body.arguments)
        if text not in arguments:
            return _constant(self._body, text)
        argument = arguments.index(text)
        is_kept = _source(self._body, self._body.returns[argument])[0] == text
        return self.initial(argument) if is_kept else None


def _conjuncts(cond: FunctionGraph, text: str) -> list[str]:
    """Returns the conditions that are joined by "and"."""
    text, producer = _source(cond, text)
    if producer is None or producer.op != "LogicalAnd":
        return [text]
    return [test for side in producer.inputs for test in _conjuncts(cond, side)]


def _count(cond: FunctionGraph, test: str, loop: _Loop) -> int | None:
    """Returns the trip count that one condition allows, or None."""
    producer = cond.producer(test)
    if producer is None or producer.op != "Less":
        return None
    counter = loop.argument(_source(cond, producer.inputs[0])[0])
    if counter is None:
        return None
    first, step, limit = loop.initial(counter), loop.step(counter), _limit(cond, producer.inputs[1], loop)
    if first is None or limit is None or not step or step < 0:
        return None
    count = max(0, -(-(limit - first) // step))
    return count if first + count * step <= _LARGEST else None


def _limit_at_begin(cond: FunctionGraph, test: str, loop: _Loop) -> Limit | None:
    """Returns a condition whose operands are known when the loop begins, else None.

    A counter that goes up by ones meets every limit of its own type before it could wrap around.
    """
    producer = cond.producer(test)
    if producer is None or producer.op != "Less" or producer.proto.attr["T"].type not in _WHOLE_NUMBERS:
        return None
    tensor_names = [_skip_identities(cond, text) for text in producer.inputs]
    counter, limit = (loop.argument(text) for text in tensor_names)
    if counter is None or not loop.counts_by_ones(counter):
        return None
    constant = cond.producer(tensor_names[1])
    kind = producer.proto.attr["T"].type
    if limit is not None:
        return Limit(counter, limit, 0, kind) if loop.is_invariant(limit) else None
    if constant is None or constant.op != "Const":
        return None
    value = tensor_util.MakeNdarray(constant.proto.attr["value"].tensor)
    return Limit(counter, -1, int(value), kind) if value.shape == () else None


def _limit(cond: FunctionGraph, text: str, loop: _Loop) -> int | None:
    found = _constant(cond, text)
    if found is not None:
        return found
    argument = loop.argument(_source(cond, text)[0])
    return None if argument is None or loop.step(argument) != 0 else loop.initial(argument)


def _skip_identities(graph: FunctionGraph, text: str) -> str:
    """Returns a tensor's source, behind identities."""
    producer = graph.producer(text)
    while producer is not None and producer.op in vocabulary.IDENTITIES:
        text = producer.inputs[0]
        producer = graph.producer(text)
    return text


def _source(graph: FunctionGraph, text: str) -> tuple[str, Node | None]:
    """Returns a tensor's source and its producer, behind identities."""
    producer = graph.producer(text)
    while producer is not None and producer.op in _PASSES_ON:
        text = producer.inputs[0]
        producer = graph.producer(text)
    return text, producer


def _constant(graph: FunctionGraph, text: str) -> int | None:
    _, producer = _source(graph, text)
    if producer is None or producer.op != "Const":
        return None
    value = tensor_util.MakeNdarray(producer.proto.attr["value"].tensor)
    is_number = value.shape == () and value.dtype.kind in "iu" and abs(int(value)) <= _LARGEST
    return int(value) if is_number else None


def _computed(graph: FunctionGraph, text: str, depth: int = _DEEPEST) -> int | None:
    """Evaluates a constant integer expression, such as the length of a `tf.range`, up to a depth."""
    _, producer = _source(graph, text)
    if producer is None or producer.op not in _ARITHMETIC:
        return _constant(graph, text)
    lhs, right = (_computed(graph, side, depth - 1) if depth else None for side in producer.inputs)
    if lhs is None or right is None or (right == 0 and producer.op in ("FloorDiv", "FloorMod")):
        return None
    value = int(_ARITHMETIC[producer.op](lhs, right))
    return value if abs(value) <= _LARGEST else None
