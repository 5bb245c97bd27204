"""Removes no-op nodes (identities, joins) from functions that run op by op, to save executor time.

TensorFlow's own rewriting removes such ops too. It also makes rewrites that ignore IPUs, so it is off for IPU programs
(see `kernels`).

It removes copies without control inputs, and control dependencies on ops without effect: `tf.gradients` makes all
gradients of an op wait for each other. Ops with side effects keep their order. A variable that a function only reads is
read once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.node_defs import awaited_nodes, copy_function, copy_node, producer_name
from tf_ipu_shim.compiler.passes.dead_code_elimination import graph_with_effects, has_effect
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_COPY = "Identity"
_JOIN = "NoOp"


def simplify_function(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Returns the same function without ops that only cost time."""
    return _Simplifier(function).run()


class _Simplifier:
    """Finds the ops of one function to remove, and their replacements."""

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self._function = function
        self._graph = graph_with_effects(function)
        self._read_only = _read_only(self._graph)
        self._tensors: dict[str, str] = {}  # what stands for a tensor of an op that is left out
        self._waits: dict[str, list[str]] = {}  # what is waited for instead of an op that is left out
        self._effects: dict[str, int] = {}  # for each op that stays, the effects that it comes after, as bits
        self._count = 0
        self._reads: dict[str, str] = {}  # by variable, the op that reads it

    def run(self) -> function_pb2.FunctionDef:
        """Returns the simplified function."""
        function_copy = copy_function(self._function)
        del function_copy.node_def[:]
        protos: list[node_def_pb2.NodeDef] = []
        for node in self._graph.nodes:
            data = [self._tensors.get(tensor_name, tensor_name) for tensor_name in node.inputs]
            controls = list(
                dict.fromkeys(name for control in node.controls for name in self._replacements(control.name))
            )
            before = self._after(producer_name(tensor_name) for tensor_name in data)
            if node.op in (_COPY, "Const"):
                controls = self._needed(controls, before)
            if not self._is_removed(node, data, controls):
                proto = copy_node(node.proto, [*data, *(f"^{name}" for name in controls)])
                protos.append(proto)
                self._effects[node.name] = before | self._after(controls) | self._effect_bit(node)
        for result, tensor_name in self._function.ret.items():
            function_copy.ret[result] = self._tensors.get(tensor_name, tensor_name)
        del function_copy.signature.control_output[:]
        function_copy.control_ret.clear()
        returned = [self._function.control_ret[name] for name in self._function.signature.control_output]
        for end in dict.fromkeys(end for name in returned for end in self._replacements(name)):
            function_copy.signature.control_output.append(end)
            function_copy.control_ret[end] = end
        function_copy.node_def.extend(_remove_noop_joins(protos, function_copy.control_ret))
        return function_copy

    def _effect_bit(self, node: Node) -> int:
        if not has_effect(node.op):
            return 0
        self._count += 1
        return 1 << self._count

    def _after(self, names: Iterable[str]) -> int:
        effects = 0
        for name in names:
            effects |= self._effects.get(name, 0)
        return effects

    def _needed(self, controls: Iterable[str], before: int) -> list[str]:
        """Returns which control inputs remain for an op that already follows other effects."""
        needed = []
        for name in controls:
            if self._effects[name] & ~before:
                needed.append(name)
                before |= self._effects[name]
        return needed

    def _replacements(self, name: str) -> list[str]:
        return self._waits.get(name, [name])

    def _is_removed(self, node: Node, data: list[str], controls: list[str]) -> bool:
        """Returns whether an op is removed; records its replacement."""
        name = node.name
        if node.op == _JOIN and len(controls) < 2:
            self._waits[name] = controls
        elif node.op == _COPY and not controls and (":" in data[0] or not _is_waited_for(node)):
            self._tensors[f"{name}:output:0"] = data[0]
            self._waits[name] = [producer_name(data[0])]
        elif node.op == vocabulary.READ_VARIABLE and data[0] in self._read_only:
            first = self._reads.setdefault(data[0], name)
            if first == name:
                return False
            self._tensors[f"{name}:value:0"] = f"{first}:value:0"
            self._waits[name] = [first]
        else:
            return False
        return True


def _remove_noop_joins(protos: Sequence[node_def_pb2.NodeDef], returned: Collection[str]) -> list[node_def_pb2.NodeDef]:
    """Returns the ops, in topological order, without NoOps that only join control inputs."""
    awaited, remaining = set(returned), []
    for proto in reversed(protos):
        if proto.op != _JOIN or proto.name in awaited:
            awaited.update(awaited_nodes(proto))
            remaining.append(proto)
    return remaining[::-1]


def _read_only(graph: FunctionGraph) -> set[str]:
    """Returns the variable arguments that a function only reads."""
    read = {tensor_name for node in graph.nodes if node.op == vocabulary.READ_VARIABLE for tensor_name in node.inputs}
    return read.difference(
        tensor_name for node in graph.nodes if node.op != vocabulary.READ_VARIABLE for tensor_name in node.inputs
    ).intersection(graph.arguments)


def _is_waited_for(node: Node) -> bool:
    return any(node in user.controls for user in node.users)
