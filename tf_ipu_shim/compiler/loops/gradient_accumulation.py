"""Turns gradient accumulation ops in loop bodies into loop variables that start at zero.

An op sums its inputs. It returns the sum in each iteration whose number is a multiple of its mini-batches, and zeros in
the others. One with momentum keeps its sum in a variable, which outlives the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs
from tf_ipu_shim.compiler.loops import loop_variables
from tf_ipu_shim.compiler.loops.loop_variables import LoopVariable
from tf_ipu_shim.compiler.loops.trip_count import trip_count
from tf_ipu_shim.tf_private.protos import node_def_pb2, tensor_shape_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_INT = types_pb2.DT_INT32
_UPDATES = ("ResourceApply", "ResourceSparseApply", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def carry_accumulators(functions: Functions) -> None:
    """Adds a loop variable for each accumulation op in a loop's body."""
    reached = functions.reached()
    if all(functions[name].ops.isdisjoint(vocabulary.GRADIENT_ACCUMULATIONS) for name in reached):
        return
    for name in reached:
        graph = functions[name]
        for loop in [node for node in graph.nodes if node.op in vocabulary.LOOPS]:
            sums = _sums(functions[loop.proto.attr["body"].func.name])
            if sums:
                _check_iterations(sums, trip_count(graph, loop, functions))
                loop_variables.carry_variables(functions, graph, loop, _replace_sums(functions, loop, sums))
    for name in reached:
        for node in _sums(functions[name]):
            raise _refused(node, "is outside a loop. Use it directly in the body of ipu.loops.repeat.")


def _sums(graph: FunctionGraph) -> list[Node]:
    return [node for node in graph.nodes if node.op in vocabulary.GRADIENT_ACCUMULATIONS]


def _check_iterations(sums: Sequence[Node], iterations: int | None) -> None:
    for node in sums:
        count = node.proto.attr["num_mini_batches"].i
        if iterations is not None and iterations % count:
            raise errors_impl.FailedPreconditionError(
                None,
                None,
                f"Detected a gradient accumulation operation with {count} number of mini batches inside a loop with "
                f"{iterations} iterations. The number of iterations must be a multiple of the number of mini batches, "
                "or the last gradients would never be applied."
                " Change one of the two numbers.",
            )
        if node.proto.attr["verify_usage"].b and not _updates_a_variable(node):
            raise _refused(
                node, "updates no variable, and its sums are for optimizers. Apply them, or give verify_usage=False."
            )


def _updates_a_variable(node: Node) -> bool:
    pending, seen = [node], {node}
    while pending:
        for user in pending.pop().users:
            if user.op.startswith(_UPDATES):
                return True
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _refused(node: Node, problem: str) -> errors_impl.FailedPreconditionError:
    return errors_impl.FailedPreconditionError(None, None, f"The {node.name} {node.op} op {problem}")


def _replace_sums(functions: Functions, loop: Node, sums: Sequence[Node]) -> list[LoopVariable]:
    """Makes a loop's body compute its sums; returns the loop variables they need."""
    body = functions[loop.proto.attr["body"].func.name]
    states: list[LoopVariable] = []
    new_sums: dict[Node, list[node_def_pb2.NodeDef]] = {}
    for node in sums:
        writer = _SumWriter(node, len(body.arguments) + len(states))
        new_sums[node] = writer.nodes
        states.extend(writer.states)
    loop_variables.declare_variables(functions, loop, states)
    body.rewrite(new_sums.get)
    return states


class _SumWriter:
    """Writes the ops that replace one accumulation op.

    Args:
        index: the index of the first loop variable that is free.

    Attributes:
        nodes: the ops; the last one has the name of the op that they replace.
        states: the loop variables for them.
    """

    def __init__(self, node: Node, index: int) -> None:
        self.nodes: list[node_def_pb2.NodeDef] = []
        self.states: list[LoopVariable] = []
        self._name = node.name
        self._first_index = index
        self._marks = {
            name: value for name, value in node.proto.attr.items() if name.startswith("_") and name != "_output_shapes"
        }
        attributes = node.proto.attr
        self._kind = attributes["T"].type
        controls = control_inputs(node.proto)
        count = self._argument(0)
        none, one = self._constant("none", 0, _INT), self._constant("one", 1, _INT)
        incremented = self._add("number", "AddV2", [count, one], "z", T=_INT)
        due = self._add(
            "due", "Equal", [incremented, self._constant("last", attributes["num_mini_batches"].i, _INT)], "z", T=_INT
        )
        scalar = tensor_shape_pb2.TensorShapeProto()
        self._keep(
            count, _INT, scalar, self._add("next_number", "SelectV2", [due, none, incremented], "output", T=_INT)
        )
        if node.op == vocabulary.MOMENTUM_ACCUMULATION:
            first = self._add("first", "Equal", [count, none], "z", T=_INT)
            summed = self._in_variable(node.inputs[0], node.inputs[1], first, attributes["momentum"].f, controls)
            controls = [*controls, f"^{self.nodes[-1].name}"]
            nothing = self._add("nothing", "ZerosLike", [summed], "y", T=self._kind)
        else:
            total = self._argument(1)
            summed = self._add("summed", "AddV2", [total, node.inputs[0]], "z", T=self._kind)
            nothing = self._add("nothing", "ZerosLike", [summed], "y", T=self._kind)
            next_total = self._add("next_total", "SelectV2", [due, nothing, summed], "output", T=self._kind)
            self._keep(total, self._kind, attributes["shape"].shape, next_total)
        self._add("", "SelectV2", [due, summed, nothing, *controls], "output", T=self._kind)

    def _in_variable(self, variable: str, gradient: str, first: str, momentum: float, controls: list[str]) -> str:
        """Adds a gradient to a variable, scaled by momentum at the first mini-batch."""
        value = self._add("value", "ReadVariableOp", [variable, *controls], "value", dtype=self._kind)
        decayed = self._add(
            "decayed", "Mul", [value, self._constant("momentum", momentum, self._kind)], "z", T=self._kind
        )
        before = self._add("before", "SelectV2", [first, decayed, value], "output", T=self._kind)
        summed = self._add("summed", "AddV2", [before, gradient], "z", T=self._kind)
        self._add("written", "AssignVariableOp", [variable, summed], "", dtype=self._kind)
        return summed

    def _argument(self, offset: int) -> str:
        return f"ipu_accumulated_{self._first_index + offset}"

    def _keep(self, argument: str, kind: int, shape: tensor_shape_pb2.TensorShapeProto, tensor: str) -> None:
        self.states.append(LoopVariable(argument, kind, shape, tensor))

    def _constant(self, name: str, value: float, kind: int) -> str:
        tensor = self._add(name, "Const", [], "output", dtype=kind)
        array = np.array(value, dtypes.as_dtype(kind).as_numpy_dtype)
        self.nodes[-1].attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(array))
        return tensor

    def _add(self, name: str, op: str, inputs: Sequence[str], output: str, **types: int) -> str:
        """Adds an op, named like the replaced one by default; returns its result."""
        node = node_def_pb2.NodeDef(name=f"{self._name}/{name}" if name else self._name, op=op, input=inputs)
        for attribute, kind in types.items():
            node.attr[attribute].type = kind
        for attribute, value in self._marks.items():
            node.attr[attribute].CopyFrom(value)
        self.nodes.append(node)
        return f"{node.name}:{output}:0"
