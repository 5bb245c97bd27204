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
_INTEGERS = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64})
_INT32_MAX = 2**31 - 1  # of an int32: what is beyond it may have wrapped around on the way
_MAX_DEPTH = 8  # ops after each other: more than a `tf.range` has, and few enough to look at each way
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
    description = _Loop.of(graph, loop, graphs)
    counts = [
        _count(description.cond, test, description)
        for test in _conjuncts(description.cond, description.cond.returns[0])
    ]
    return min((count for count in counts if count is not None), default=None) if None not in counts else None


def find_trips(graph: FunctionGraph, loop: Node, graphs: Mapping[str, FunctionGraph]) -> Trips | None:
    """Returns how a loop's trip count follows from values known when it begins, or None."""
    description = _Loop.of(graph, loop, graphs)
    constant_counts: list[int] = []
    limits: list[Limit] = []
    for test in _conjuncts(description.cond, description.cond.returns[0]):
        count = _count(description.cond, test, description)
        limit = _limit_at_begin(description.cond, test, description) if count is None else None
        if count is not None:
            constant_counts.append(count)
        elif limit is not None:
            limits.append(limit)
        else:
            return None
    return Trips(min(constant_counts, default=-1), tuple(limits))


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
        tensor_name, producer = _source(self._graph, self._loop.inputs[argument])
        if producer is not None and producer.op in vocabulary.LOOPS and producer is not self._loop:
            return self._final_counter(tensor_name, producer)
        return _computed(self._graph, tensor_name)

    def _final_counter(self, tensor_name: str, before: Node) -> int | None:
        """Returns the final counter of another loop: a backward loop runs as many times as its forward loop."""
        count = trip_count(self._graph, before, self._graphs)
        if count is None:
            return None
        loop = _Loop.of(self._graph, before, self._graphs)
        argument = result_index(tensor_name)
        first, step = loop.initial(argument), loop.step(argument)
        return None if first is None or step is None else first + count * step

    def argument(self, tensor_name: str) -> int | None:
        """Returns the index of a loop variable, by its name in the condition."""
        return self._cond.index(tensor_name) if tensor_name in self._cond else None

    def step(self, argument: int) -> int | None:
        """Returns the increment of a loop variable per iteration; 0 for an invariant one, None if unknown."""
        argument_name = list(self._body.arguments)[argument]
        tensor_name, producer = _source(self._body, self._body.returns[argument])
        if tensor_name == argument_name:
            return 0
        if producer is None or producer.op not in ("AddV2", "Add"):
            return None
        sides = [_source(self._body, side) for side in producer.inputs]
        for (source, _), opposite in zip(sides, reversed(producer.inputs)):
            if source == argument_name:
                return self._increment(opposite)
        return None

    def counts_by_ones(self, argument: int) -> bool:
        """Returns whether a loop variable increases by one per iteration."""
        producer = self._body.producer(_skip_identities(self._body, self._body.returns[argument]))
        if producer is None or producer.op not in ("AddV2", "Add"):
            return False
        argument_name, sides = list(self._body.arguments)[argument], producer.inputs
        return any(
            _skip_identities(self._body, side) == argument_name and self._increment(opposite) == 1
            for side, opposite in zip(sides, sides[::-1])
        )

    def is_invariant(self, argument: int) -> bool:
        """Returns whether a loop variable is invariant."""
        return _skip_identities(self._body, self._body.returns[argument]) == list(self._body.arguments)[argument]

    def _increment(self, tensor_name: str) -> int | None:
        """Returns a constant in the body, or the initial value of an invariant loop variable."""
        tensor_name, _ = _source(self._body, tensor_name)
        arguments = list(self._body.arguments)
        if tensor_name not in arguments:
            return _constant(self._body, tensor_name)
        argument = arguments.index(tensor_name)
        is_kept = _source(self._body, self._body.returns[argument])[0] == tensor_name
        return self.initial(argument) if is_kept else None


def _conjuncts(cond: FunctionGraph, tensor_name: str) -> list[str]:
    """Returns the conditions that are joined by "and"."""
    tensor_name, producer = _source(cond, tensor_name)
    if producer is None or producer.op != "LogicalAnd":
        return [tensor_name]
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
    return count if first + count * step <= _INT32_MAX else None


def _limit_at_begin(cond: FunctionGraph, test: str, loop: _Loop) -> Limit | None:
    """Returns a condition whose operands are known when the loop begins, else None.

    A counter that goes up by ones reaches every limit of the same type before it could wrap around.
    """
    producer = cond.producer(test)
    if producer is None or producer.op != "Less" or producer.proto.attr["T"].type not in _INTEGERS:
        return None
    tensor_names = [_skip_identities(cond, tensor_name) for tensor_name in producer.inputs]
    counter, limit = (loop.argument(tensor_name) for tensor_name in tensor_names)
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


def _limit(cond: FunctionGraph, tensor_name: str, loop: _Loop) -> int | None:
    limit = _constant(cond, tensor_name)
    if limit is not None:
        return limit
    argument = loop.argument(_source(cond, tensor_name)[0])
    return None if argument is None or loop.step(argument) != 0 else loop.initial(argument)


def _skip_identities(graph: FunctionGraph, tensor_name: str) -> str:
    """Returns a tensor's source, behind identities."""
    producer = graph.producer(tensor_name)
    while producer is not None and producer.op in vocabulary.IDENTITIES:
        tensor_name = producer.inputs[0]
        producer = graph.producer(tensor_name)
    return tensor_name


def _source(graph: FunctionGraph, tensor_name: str) -> tuple[str, Node | None]:
    """Returns a tensor's source and its producer, behind identities."""
    producer = graph.producer(tensor_name)
    while producer is not None and producer.op in _PASSES_ON:
        tensor_name = producer.inputs[0]
        producer = graph.producer(tensor_name)
    return tensor_name, producer


def _constant(graph: FunctionGraph, tensor_name: str) -> int | None:
    _, producer = _source(graph, tensor_name)
    if producer is None or producer.op != "Const":
        return None
    value = tensor_util.MakeNdarray(producer.proto.attr["value"].tensor)
    is_number = value.shape == () and value.dtype.kind in "iu" and abs(int(value)) <= _INT32_MAX
    return int(value) if is_number else None


def _computed(graph: FunctionGraph, tensor_name: str, depth: int = _MAX_DEPTH) -> int | None:
    """Evaluates a constant integer expression, such as the length of a `tf.range`, up to a depth."""
    _, producer = _source(graph, tensor_name)
    if producer is None or producer.op not in _ARITHMETIC:
        return _constant(graph, tensor_name)
    lhs, right = (_computed(graph, side, depth - 1) if depth else None for side in producer.inputs)
    if lhs is None or right is None or (right == 0 and producer.op in ("FloorDiv", "FloorMod")):
        return None
    value = int(_ARITHMETIC[producer.op](lhs, right))
    return value if abs(value) <= _INT32_MAX else None
