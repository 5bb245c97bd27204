"""Extracts the FunctionDef of one XLA program from a traced function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import strip_attributes
from tf_ipu_shim.compiler.placement import cloned_constants as constant_ops
from tf_ipu_shim.tf_private.protos import function_pb2, types_pb2

_INTEGERS = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64})  # what shapes, axes and indices are made of
# Inputs that are an op's output shape: XLA needs their values to compile. Other values, such
# as the begin of a slice, may change from run to run, and XLA would compile for each.
_SHAPE_INPUTS = {
    "BroadcastTo": (1,),
    "Empty": (0,),
    "Fill": (0,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Slice": (2,),
    "Tile": (1,),
}

# Tells which arguments of a function XLA must know when it compiles: (function, number of arguments) -> flags.
ConstantArguments = Callable[[function_pb2.FunctionDef, int], Sequence[bool]]


class LaunchFunction(NamedTuple):
    """The function of an XLA launch.

    Args:
        inputs: the tensors that are its arguments, in order.
        constants: how many of the first are constants at compile time.
    """

    definition: function_pb2.FunctionDef
    inputs: list[str]
    constants: int = 0


class ClusterFunction:
    """Collects the nodes of one XLA program and the tensors that cross its boundary.

    Args:
        nodes: the program's own nodes, in topological order.
        constants: nodes to clone into it where needed.
        reads: reads of variables to repeat in it where needed.
        rename: returns the name under which a called function is shown to XLA.

    Attributes:
        inputs: tensor name to `DataType`, for tensors from outside.
        outside_controls: nodes outside that must have run before.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        nodes: Sequence[Node],
        constants: set[Node],
        reads: set[Node],
        rename: Callable[[str], str],
    ) -> None:
        self._graph = graph
        self._rename = rename
        self._own = members = set(nodes)
        clones: dict[Node, None] = {}
        self.inputs: dict[str, int] = {}
        self.outside_controls: dict[Node, None] = {}

        def take(node: Node) -> None:
            for tensor_name, producer in zip(node.inputs, node.producers):
                if producer in members or producer in clones:
                    continue
                if producer is not None and (producer in constants or producer in reads):
                    take(producer)
                    clones[producer] = None
                else:
                    self.inputs.setdefault(tensor_name, graph.type_of(tensor_name))

        for node in nodes:
            take(node)
        self._members = members.union(clones)
        self._place = {clone: index for index, clone in enumerate(clones)}
        self._repeated_reads: dict[str, list[Node]] = {}  # by variable
        for clone in clones:
            if clone in reads:
                self._repeated_reads.setdefault(clone.inputs[0], []).append(clone)
        for node in nodes:
            for control in node.controls:
                if control not in self._members and control not in constants:
                    self.outside_controls[control] = None
        self._nodes = [*clones, *nodes]

    def in_launch_order(
        self, name: str, outputs: Sequence[str], constant_arguments: ConstantArguments
    ) -> LaunchFunction:
        """Returns the function with its arguments in the order that XLA's launch op requires."""
        order = self.input_order({})
        definition = self.definition(name, order, outputs)
        if _INTEGERS.isdisjoint(self.inputs.values()):
            return LaunchFunction(definition, order)
        flags = dict(zip(order, constant_arguments(definition, len(order))))
        constant = {tensor: True for tensor, flag in flags.items() if flag and self._may_be_constant(tensor)}
        if not constant:
            return LaunchFunction(definition, order)
        order = self.input_order(constant)
        return LaunchFunction(self.definition(f"{name}_ordered", order, outputs), order, len(constant))

    def _may_be_constant(self, tensor: str) -> bool:
        """Returns whether XLA may need an input as a compile-time constant.

        TensorFlow's analysis treats all inputs of a call as constants, including weights and data of a Keras LSTM: XLA
        would compile again for each value. So of arguments that only calls use, only integers count; variables never
        do.
        """
        kind = self.inputs[tensor]
        if kind in _INTEGERS or kind in op_types.HANDLES:
            return kind in _INTEGERS
        return any(node.op not in vocabulary.FUNCTION_ATTRIBUTES for node in self._own if tensor in node.inputs)

    def shape_variables(self, order: Sequence[str]) -> list[int]:
        """Returns which inputs are variables that XLA needs at compile time because they become shapes."""
        shapes = [
            producer
            for node in self._nodes
            for index in _SHAPE_INPUTS.get(node.op, ())
            if (producer := node.producers[index]) is not None
        ]
        seen: set[Node] = set()
        handles: set[str] = set()
        while shapes:
            node = shapes.pop()
            if node in seen or node not in self._members:
                continue
            seen.add(node)
            if node.op == vocabulary.READ_VARIABLE:
                handles.add(node.inputs[0])
            elif constant_ops.is_foldable(node.op):
                shapes.extend(producer for producer in node.producers if producer is not None)
        return [index for index, tensor in enumerate(order) if tensor in handles]

    def input_order(self, constant: Mapping[str, bool]) -> list[str]:
        """Returns the inputs in the launch op's order: compile-time constants, values, resources."""
        rank = {
            name: 2 if kind == op_types.RESOURCE else 0 if constant.get(name) else 1
            for name, kind in self.inputs.items()
        }
        return sorted(self.inputs, key=rank.__getitem__)

    def definition(self, name: str, order: Sequence[str], outputs: Iterable[str]) -> function_pb2.FunctionDef:
        """Returns the FunctionDef with its arguments in the given order."""
        function = function_pb2.FunctionDef()
        function.signature.name = name
        names = {tensor: f"input_{index}" for index, tensor in enumerate(order)}
        for tensor in order:
            function.signature.input_arg.add(name=names[tensor], type=self.inputs[tensor])
        for index, tensor in enumerate(outputs):
            function.signature.output_arg.add(name=f"output_{index}", type=self._graph.type_of(tensor))
            function.ret[f"output_{index}"] = tensor
        function.signature.is_stateful = any(op_types.is_stateful(node.op) for node in self._nodes)
        for node in self._nodes:
            self._add(function, node, names)
        return function

    def _add(self, function: function_pb2.FunctionDef, node: Node, names: Mapping[str, str]) -> None:
        proto = function.node_def.add()
        proto.CopyFrom(node.proto)
        strip_attributes(proto, self._rename)
        del proto.input[:]
        proto.input.extend(names.get(tensor_name, tensor_name) for tensor_name in node.inputs)
        controls = [*(control for control in node.controls if control in self._members), *self._reads_before(node)]
        proto.input.extend(f"^{control.name}" for control in dict.fromkeys(controls))
        if op_types.is_stateful(node.op):
            function.signature.control_output.append(node.name)
            function.control_ret[node.name] = node.name

    def _reads_before(self, node: Node) -> list[Node]:
        """Returns the cloned reads that must see a variable before this op may write it."""
        if node in self._place or not op_types.is_stateful(node.op):
            return []
        reads = {read for tensor_name in node.inputs for read in self._repeated_reads.get(tensor_name, ())}
        return sorted(reads, key=self._place.__getitem__)
