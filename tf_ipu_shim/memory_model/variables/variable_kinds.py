"""Classifies the variables of a program: weights, optimizer state, gradient accumulators.

Graphcore's compiler distinguishes them by their use: a variable is optimizer state if only the update uses it, that is,
ops on gradients. This module does the same in the traced functions, by following data from the gradient ops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs, producer_name
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.memory_model.hlo.instructions import is_gradient
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

WEIGHT, STATE, ACCUMULATOR = "weight", "optimizer_state", "accumulator"
_FORWARDING = frozenset({"Cast", "Identity", vocabulary.READ_VARIABLE})
_OPTIMIZER_OPS = ("ResourceApply", "ResourceSparseApply")  # take the trained variable first, then its state


def variable_kinds(library: Mapping[str, function_pb2.FunctionDef], function: str) -> list[str]:
    """Returns the kind of each argument of a traced function, should it be a variable.

    Example:
        >>> weight, momentum = tf.Variable(1.0), tf.Variable(0.0)
        >>> def step():
        ...     with tf.GradientTape() as tape:
        ...         loss = weight**2
        ...     gradient = tape.gradient(loss, weight)
        ...     momentum.assign(0.9 * momentum + gradient)
        ...     weight.assign_sub(0.1 * momentum)
        >>> traced = tf.function(step).get_concrete_function().function_def
        >>> variable_kinds({"step": traced}, "step")
        ['weight', 'optimizer_state']
    """
    uses = _Uses(library)
    arguments = library[function].signature.input_arg
    return [_kind(uses.of(function, index, False)) for index in range(len(arguments))]


def _kind(found: frozenset[str]) -> str:
    if ACCUMULATOR in found:
        return ACCUMULATOR
    return STATE if STATE in found and WEIGHT not in found else WEIGHT


@dataclasses.dataclass
class _Traced:
    """Users of each tensor of a function, and its nodes' position relative to gradients."""

    users: dict[str, list[tuple[node_def_pb2.NodeDef, int]]]
    gradients: set[str]
    after: set[str]  # what works on gradients, without being one
    before: set[str]  # what gradients, results and host ops are made of


def _kind_by_use(traced: _Traced, node: node_def_pb2.NodeDef, position: int, in_update: bool) -> set[str]:
    """Returns the kind of variable that a use by an op implies."""
    if vocabulary.ACCUMULATOR_ATTRIBUTE in node.attr and position == 0:
        return {ACCUMULATOR}
    if node.op.startswith(_OPTIMIZER_OPS) and position == 0:
        return {WEIGHT}
    if in_update or node.name in traced.after:
        return {STATE}
    return {WEIGHT} if node.name in traced.before else set()


class _Uses:
    """Finds how functions use their arguments."""

    def __init__(self, library: Mapping[str, function_pb2.FunctionDef]) -> None:
        self._library = library
        self._traced: dict[str, _Traced] = {}
        self._with_gradients: dict[str, bool] = {}
        self._found: dict[tuple[str, int, bool], frozenset[str]] = {}

    def of(self, function: str, index: int, in_update: bool) -> frozenset[str]:
        """Returns the kinds that a function's use of an argument implies."""
        key = (function, index, in_update)
        if key not in self._found:
            self._found[key] = frozenset()  # for what calls itself
            found: set[str] = set()
            arguments = self._library[function].signature.input_arg
            if index < len(arguments):
                self._follow(function, arguments[index].name, in_update, found)
            self._found[key] = frozenset(found)
        return self._found[key]

    def _follow(self, function: str, tensor: str, in_update: bool, found: set[str]) -> None:
        traced = self._of(function)
        pending = [tensor]
        while pending:
            for node, position in traced.users.get(pending.pop(), ()):
                called = self._called(node)
                if called:
                    inside = in_update or node.name in traced.after
                    first = 1 if node.op in vocabulary.BRANCHES else 0
                    for name in called:
                        if position >= first:
                            found |= self.of(name, position - first, inside)
                elif node.op in _FORWARDING:
                    pending.append(f"{node.name}:{_first_output(node)}:0")
                else:
                    found |= _kind_by_use(traced, node, position, in_update)

    def _called(self, node: node_def_pb2.NodeDef) -> list[str]:
        if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
            return []
        return [name for name in op_types.called_functions(node) if name in self._library]

    def _has_gradients(self, function: str) -> bool:
        if function not in self._with_gradients:
            self._with_gradients[function] = False
            nodes = self._library[function].node_def
            self._with_gradients[function] = any(self._is_gradient(node) for node in nodes)
        return self._with_gradients[function]

    def _is_gradient(self, node: node_def_pb2.NodeDef) -> bool:
        return is_gradient(node.name) or any(self._has_gradients(name) for name in self._called(node))

    def _of(self, function: str) -> _Traced:
        if function in self._traced:
            return self._traced[function]
        definition = self._library[function]
        users: dict[str, list[tuple[node_def_pb2.NodeDef, int]]] = {}
        feeds: dict[str, list[str]] = {}
        follows: dict[str, list[str]] = {}
        gradients: set[str] = set()
        ends: set[str] = {producer_name(tensor_name) for tensor_name in definition.ret.values()}
        for node in definition.node_def:
            inputs = data_inputs(node)
            feeds[node.name] = [producer_name(tensor_name) for tensor_name in inputs]
            for position, tensor_name in enumerate(inputs):
                users.setdefault(tensor_name, []).append((node, position))
                follows.setdefault(feeds[node.name][position], []).append(node.name)
            if self._is_gradient(node):
                gradients.add(node.name)
                ends.add(node.name)
            elif not op_types.has_outputs(node.op) and not _assigns(node):
                ends.add(node.name)  # an outfeed, say
        updates = set(reachable(gradients, lambda name: follows.get(name, ())))
        needed = set(reachable(ends, lambda name: feeds.get(name, ())))
        traced = _Traced(users, gradients, updates - gradients, needed)
        self._traced[function] = traced
        return traced


def _assigns(node: node_def_pb2.NodeDef) -> bool:
    return "Assign" in node.op or node.op.startswith(("Resource", *_OPTIMIZER_OPS))


def _first_output(node: node_def_pb2.NodeDef) -> str:
    return next(iter(op_types.output_types(node)))
