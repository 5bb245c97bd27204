"""Analyses by data flow which values of a replicated program may differ between replicas.

Different values come from feeds, random numbers and the replica index. Sums over all replicas are common
again; gathers may be of groups of replicas. A variable is common if only common values are written to it; another
program's writes are not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs, producer_name
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_SOURCES = vocabulary.INFEEDS | {vocabulary.INFEED_DEQUEUE, vocabulary.REPLICATION_INDEX, vocabulary.RANDOM_SEED}
_NO_SOURCES = frozenset({"Assert", "Print", "PrintV2", vocabulary.OUTFEED_ENQUEUE})


class _Op(NamedTuple):
    """The parts of a node that the analysis reads: data inputs, which inputs are handles, and functions by
    attribute."""

    node: node_def_pb2.NodeDef
    inputs: list[str]
    handles: list[str]
    called: list[tuple[str, str]]
    is_source: bool


class ReplicaValues:
    """The values of a program that may differ between replicas.

    Args:
        reached: the function that each replica runs, whose arguments are the same for all, and those it runs.
    """

    def __init__(self, library: Mapping[str, function_pb2.FunctionDef], reached: Iterable[str]) -> None:
        self._library = library
        self._own: set[tuple[str, str]] = set()  # by function: arguments, nodes, and results of calls
        ops_of = {name: list(map(_parse_op, library[name].node_def)) for name in reached}
        before = -1
        while before != len(self._own):  # what is in a loop is known when its body is
            before = len(self._own)
            for name, ops in ops_of.items():
                for op in ops:
                    self._follow(name, op)

    def differs(self, function: str, node: node_def_pb2.NodeDef) -> bool:
        """Returns whether an op's result, or the value it writes to a variable, may differ between replicas."""
        return (function, node.name) in self._own

    def _is_own(self, function: str, tensor_name: str) -> bool:
        return (function, tensor_name) in self._own or (function, producer_name(tensor_name)) in self._own

    def _follow(self, function: str, op: _Op) -> None:
        if op.called:
            self._follow_call(function, op)
        elif _is_sum_of_all(op.node):
            return
        elif op.is_source or any(self._is_own(function, tensor_name) for tensor_name in op.inputs):
            self._own.add((function, op.node.name))
            if op.node.op != vocabulary.READ_VARIABLE:
                self._own.update((function, tensor_name) for tensor_name in op.handles)

    def _follow_call(self, function: str, op: _Op) -> None:
        """Propagates values into functions and back through results and variables."""
        node, inputs = op.node, op.inputs
        operands = inputs[1:] if node.op in vocabulary.BRANCHES else inputs
        apart = operands != inputs and self._is_own(function, inputs[0])  # whether replicas may run other functions
        for attribute, called in op.called:
            self._follow_arguments(function, operands, called, apart)
            callee = self._library[called]
            results = [self._is_own(called, callee.ret[result.name]) for result in callee.signature.output_arg]
            if node.op in vocabulary.LOOPS and attribute == "cond":
                apart = apart or any(results)
            else:
                replica_results = (index for index, is_own in enumerate(results) if is_own)
                self._own.update((function, f"{node.name}:output:{index}") for index in replica_results)
        if apart:
            self._own.add((function, node.name))
        if node.op in vocabulary.LOOPS:
            self._follow_iterations(function, op)

    def _follow_arguments(self, function: str, arguments: Sequence[str], callee: str, apart: bool) -> None:
        for tensor_name, argument in zip(arguments, self._library[callee].signature.input_arg):
            if apart or self._is_own(function, tensor_name):
                self._own.add((callee, argument.name))
            elif argument.type == op_types.RESOURCE and self._is_own(callee, argument.name):
                self._own.add((function, tensor_name))

    def _follow_iterations(self, function: str, op: _Op) -> None:
        """Propagates loop results to the next iteration's arguments and the condition."""
        for _, called in op.called:
            for index, argument in enumerate(self._library[called].signature.input_arg):
                if self._is_own(function, f"{op.node.name}:output:{index}"):
                    self._own.add((called, argument.name))


def _parse_op(node: node_def_pb2.NodeDef) -> _Op:
    inputs, called = data_inputs(node), [(name, function.name) for name, function in op_types.function_values(node)]
    types = op_types.input_types(node) if not called else []
    handles = [tensor_name for tensor_name, kind in zip(inputs, types) if kind == op_types.RESOURCE]
    takes_handle = any(kind in op_types.HANDLES for kind in types)
    # Stateful without a variable, as random ops are, or unknown.
    is_source = op_types.is_stateful(node.op) and not takes_handle and node.op not in _NO_SOURCES
    return _Op(node, inputs, handles, called, is_source or node.op in _SOURCES)


def _is_sum_of_all(node: node_def_pb2.NodeDef) -> bool:
    return node.op == vocabulary.CROSS_REPLICA_SUM and not node.attr["replica_group_size"].i
