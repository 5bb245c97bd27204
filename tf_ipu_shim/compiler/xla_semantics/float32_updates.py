"""Writes updates of float16 variables as ops of float32, whose squares and products do not overflow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_HALF, _FLOAT = types_pb2.DT_HALF, types_pb2.DT_FLOAT
_LARGEST = np.float32(65504)
_RESULTS = {"Cast": "y", "Const": "output", "Neg": "y", "ReadVariableOp": "value", "Sqrt": "y"}

Write = Callable[["FunctionWriter", node_def_pb2.NodeDef, Sequence[str]], node_def_pb2.NodeDef]


class FunctionWriter:
    """Makes ops for a function.

    Args:
        function: whose names are taken.

    Attributes:
        nodes: the ops made so far.
    """

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self.nodes: list[node_def_pb2.NodeDef] = []
        self._taken = {node.name for node in function.node_def}
        self._taken.update(argument.name for argument in function.signature.input_arg)

    def op(
        self, op: str, inputs: Sequence[str], name: str, like: node_def_pb2.NodeDef | None = None, **types: int
    ) -> str:
        """Makes an op with type attributes, placed like another one; returns its first result."""
        node = node_def_pb2.NodeDef(name=self._fresh(f"{name}/float32"), op=op, input=inputs)
        if like is not None:
            node.device = like.device
            for attribute, value in like.attr.items():
                if attribute.startswith("_") and attribute != "_output_shapes":
                    node.attr[attribute].CopyFrom(value)
        for attribute, kind in types.items():
            node.attr[attribute].type = kind
        self.nodes.append(node)
        return f"{node.name}:{_RESULTS.get(op, 'z')}:0"

    def cast(self, tensor: str, to: int, name: str, like: node_def_pb2.NodeDef | None = None) -> str:
        """Casts between float16 and float32."""
        return self.op("Cast", [tensor], name, like, SrcT=_HALF if to == _FLOAT else _FLOAT, DstT=to)

    def constant(self, value: np.generic, name: str, like: node_def_pb2.NodeDef) -> str:
        """Makes a constant."""
        tensor = self.op("Const", [], name, like, dtype=dtypes.as_dtype(value.dtype).as_datatype_enum)
        self.nodes[-1].attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value))
        return tensor

    def _fresh(self, wanted: str) -> str:
        name = next(one for number in itertools.count() if (one := f"{wanted}_{number}") not in self._taken)
        self._taken.add(name)
        return name


class _Update:
    """The float32 ops that take an update's place.

    Args:
        writer: of the function.
        node: the update.
        inputs: its inputs, float16 ones in float32.
    """

    def __init__(self, writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> None:
        self._writer, self._node = writer, node
        self.values = [text for text in inputs if not text.startswith("^")]
        self._controls = [text for text in inputs if text.startswith("^")]
        self._assigned: list[str] = []
        self.is_nesterov = node.attr["use_nesterov"].b

    def read(self, variable: str) -> str:
        """The variable before the update."""
        value = self._op(vocabulary.READ_VARIABLE, variable, *self._controls, dtype=_HALF)
        return self._writer.cast(value, _FLOAT, self._node.name, self._node)

    def assign(self, variable: str, value: str) -> None:
        """Sets a variable to a value within the range of float16."""
        for _ in range(2):  # a minimum on each side: see `float16_overflow`
            value = self("Neg", self("Minimum", value, self.constant(_LARGEST)))
        half = self._writer.cast(value, _HALF, self._node.name, self._node)
        self._op("AssignVariableOp", variable, half, *self._controls, dtype=_HALF)
        self._assigned.append(f"^{self._writer.nodes[-1].name}")

    def constant(self, value: np.generic) -> str:
        """A constant."""
        return self._writer.constant(value, self._node.name, self._node)

    def __call__(self, op: str, *inputs: str) -> str:
        """Adds an op of float32."""
        return self._op(op, *inputs, T=_FLOAT)

    def _op(self, op: str, *inputs: str, **types: int) -> str:
        return self._writer.op(op, inputs, self._node.name, self._node, **types)

    def done(self) -> node_def_pb2.NodeDef:
        """What others wait for, by the update's name."""
        made = node_def_pb2.NodeDef(name=self._node.name, op="NoOp", input=self._assigned, device=self._node.device)
        for attribute, value in self._node.attr.items():
            if attribute.startswith("_"):
                made.attr[attribute].CopyFrom(value)
        return made


def _gradient_descent(
    writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]
) -> node_def_pb2.NodeDef:
    update = _Update(writer, node, inputs)
    variable, rate, gradient = update.values
    update.assign(variable, update("Sub", update.read(variable), update("Mul", rate, gradient)))
    return update.done()


def _momentum(writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> node_def_pb2.NodeDef:
    """`ResourceApplyMomentum`, and Keras', whose sum has the rate in it."""
    update = _Update(writer, node, inputs)
    variable, total, rate, gradient, momentum = update.values
    is_keras = node.op == "ResourceApplyKerasMomentum"
    scaled = update("Mul", gradient, rate)
    kept = update("Mul", update.read(total), momentum)
    new = update("Sub", kept, scaled) if is_keras else update("AddV2", kept, gradient)
    step = update("Mul", new, momentum) if update.is_nesterov else new
    step = step if is_keras else update("Neg", update("Mul", step, rate))
    if update.is_nesterov:
        step = update("Sub", step, scaled)
    update.assign(variable, update("AddV2", update.read(variable), step))
    update.assign(total, new)
    return update.done()


def _adam(writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> node_def_pb2.NodeDef:
    update = _Update(writer, node, inputs)
    variable, first, second, power1, power2, rate, beta1, beta2, epsilon, gradient = update.values
    one = update.constant(np.float32(1))
    rest1, rest2 = update("Sub", one, beta1), update("Sub", one, beta2)
    mean, square = update.read(first), update.read(second)
    mean = update("AddV2", mean, update("Mul", update("Sub", gradient, mean), rest1))
    square = update("AddV2", square, update("Mul", update("Sub", update("Mul", gradient, gradient), square), rest2))
    rate = update(
        "RealDiv", update("Mul", rate, update("Sqrt", update("Sub", one, power2))), update("Sub", one, power1)
    )
    step = mean
    if update.is_nesterov:
        step = update("AddV2", update("Mul", mean, beta1), update("Mul", gradient, rest1))
    step = update("RealDiv", update("Mul", step, rate), update("AddV2", update("Sqrt", square), epsilon))
    update.assign(variable, update("Sub", update.read(variable), step))
    update.assign(first, mean)
    update.assign(second, square)
    return update.done()


UPDATES: Mapping[str, Write] = {
    "ResourceApplyAdam": _adam,
    "ResourceApplyGradientDescent": _gradient_descent,
    "ResourceApplyKerasMomentum": _momentum,
    "ResourceApplyMomentum": _momentum,
}
"""For a type of update what writes it in float32, and gives the op that others wait for."""
