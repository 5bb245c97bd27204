"""How often a loop runs, where that can be told beforehand."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from tensorflow.python.framework import tensor_util

from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node

_PASSES_ON = vocabulary.IDENTITIES | {"Cast"}
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
    """The number of iterations of a loop that counts up to a constant; None for any other.

    Args:
        graph: the function that the loop is in.
        loop: a `While` node.
        graphs: all functions by name.
    """
    cond, body = (graphs[loop.proto.attr[name].func.name] for name in ("cond", "body"))
    counts = _bounds(cond, cond.returns[0], _Loop(graph, loop, cond, body, graphs))
    return None if counts is None else min(counts)


class _Loop:
    """What is constant around a loop and in it."""

    def __init__(
        self,
        graph: FunctionGraph,
        loop: Node,
        cond: FunctionGraph,
        body: FunctionGraph,
        graphs: Mapping[str, FunctionGraph],
    ) -> None:
        self._graph = graph
        self._graphs = graphs
        self._loop = loop
        self._cond = list(cond.arguments)
        self._body = body

    def initial(self, argument: int) -> int | None:
        """The value with which a loop variable begins."""
        text, producer = _source(self._graph, self._loop.inputs[argument])
        if producer is not None and producer.op in vocabulary.LOOPS and producer is not self._loop:
            return self._left_by(text, producer)
        return _computed(self._graph, text)

    def _left_by(self, text: str, before: Node) -> int | None:
        """What the counter of another loop ends with: a backward loop runs as often as its forward loop did."""
        count = trip_count(self._graph, before, self._graphs)
        if count is None:
            return None
        cond, body = (self._graphs[before.proto.attr[name].func.name] for name in ("cond", "body"))
        loop = _Loop(self._graph, before, cond, body, self._graphs)
        argument = int(text.rsplit(":", 1)[1])
        first, step = loop.initial(argument), loop.step(argument)
        return None if first is None or step is None else first + count * step

    def argument(self, text: str) -> int | None:
        """The number of a loop variable, by its name in the condition."""
        return self._cond.index(text) if text in self._cond else None

    def step(self, argument: int) -> int | None:
        """What is added to a loop variable in each iteration; 0 for one that stays as it is."""
        own = list(self._body.arguments)[argument]
        text, producer = _source(self._body, self._body.returns[argument])
        if text == own:
            return 0
        if producer is None or producer.op not in ("AddV2", "Add"):
            return None
        sides = [_source(self._body, side) for side in producer.inputs]
        for (one, _), other in zip(sides, reversed(producer.inputs)):
            if one == own:
                return self._added(other)
        return None

    def _added(self, text: str) -> int | None:
        """A number in the body: a constant there, or what a loop variable that stays as it is begins with."""
        text, _ = _source(self._body, text)
        arguments = list(self._body.arguments)
        if text not in arguments:
            return _constant(self._body, text)
        argument = arguments.index(text)
        is_kept = _source(self._body, self._body.returns[argument])[0] == text
        return self.initial(argument) if is_kept else None


def _bounds(cond: FunctionGraph, text: str, loop: _Loop) -> list[int] | None:
    """The numbers of iterations that each of the conditions joined by "and" allows."""
    _, producer = _source(cond, text)
    if producer is None:
        return None
    if producer.op == "LogicalAnd":
        sides = [_bounds(cond, side, loop) for side in producer.inputs]
        return None if None in sides else [count for side in sides for count in side or ()]
    if producer.op != "Less":
        return None
    counter = loop.argument(_source(cond, producer.inputs[0])[0])
    if counter is None:
        return None
    first, step, limit = loop.initial(counter), loop.step(counter), _limit(cond, producer.inputs[1], loop)
    if first is None or limit is None or not step or step < 0:
        return None
    count = max(0, -(-(limit - first) // step))
    return [count] if first + count * step <= _LARGEST else None


def _limit(cond: FunctionGraph, text: str, loop: _Loop) -> int | None:
    found = _constant(cond, text)
    if found is not None:
        return found
    argument = loop.argument(_source(cond, text)[0])
    return None if argument is None or loop.step(argument) != 0 else loop.initial(argument)


def _source(graph: FunctionGraph, text: str) -> tuple[str, Node | None]:
    """A tensor and its producer, behind ops that only pass it on."""
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
    """A number that is computed from constants as a `tf.range`'s length is, by so many ops after each other at most."""
    _, producer = _source(graph, text)
    if producer is None or producer.op not in _ARITHMETIC:
        return _constant(graph, text)
    left, right = (_computed(graph, side, depth - 1) if depth else None for side in producer.inputs)
    if left is None or right is None or (right == 0 and producer.op in ("FloorDiv", "FloorMod")):
        return None
    value = int(_ARITHMETIC[producer.op](left, right))
    return value if abs(value) <= _LARGEST else None
