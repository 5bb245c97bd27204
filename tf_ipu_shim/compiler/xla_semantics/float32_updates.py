"""Runs updates of float16 variables on float32 copies, whose squares and products do not overflow.

A copy is a separate variable that nothing else refers to. XLA has none, so programs with copies run in mode `kernels`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import is_control
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_HALF, _FLOAT = types_pb2.DT_HALF, types_pb2.DT_FLOAT
_FLOAT16_MAX = np.float32(65504)
_RESULTS = {
    "Cast": "y", "ClipByValue": "output", "Const": "output", "IsFinite": "y", "ReadVariableOp": "value",
    "SelectV2": "output", "VarHandleOp": "resource",
}  # fmt: skip
# TensorFlow's name of handles that own their variable: `ResourceHandle::ANONYMOUS_NAME`, on 2.15.1 and 2.21.0.
_WITHOUT_NAME = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347"


class FunctionWriter:
    """Makes ops for a function.

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

    def _fresh(self, base_name: str) -> str:
        name = next(
            candidate for suffix in itertools.count() if (candidate := f"{base_name}_{suffix}") not in self._taken
        )
        self._taken.add(name)
        return name


def is_copy(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op makes a variable that nothing else refers to."""
    return node.op == "VarHandleOp" and node.attr["shared_name"].s == _WITHOUT_NAME


def update_float32_copies(
    writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]
) -> node_def_pb2.NodeDef:
    """Writes an update of float16 variables as the same update of copies."""
    return _Update(writer, node, inputs).write()


class _Update:
    """The ops that replace an update; see `update_float32_copies`."""

    def __init__(self, writer: FunctionWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> None:
        self._writer, self._node = writer, node
        values = [tensor_name for tensor_name in inputs if not is_control(tensor_name)]
        self._controls = [tensor_name for tensor_name in inputs if is_control(tensor_name)]
        types = op_types.input_types(node)
        self._copies: dict[str, str] = {}  # handles by the variable's
        for variable, kind in zip(values, types):
            if kind == op_types.RESOURCE and variable not in self._copies:
                self._copies[variable] = self._op("VarHandleOp", dtype=_FLOAT)
                self._last.attr["shared_name"].s = _WITHOUT_NAME
                self._last.attr["shape"].shape.unknown_rank = True
        self._values = [self._copies.get(tensor_name, tensor_name) for tensor_name in values]

    def write(self) -> node_def_pb2.NodeDef:
        """Writes them; returns the last."""
        filled = [self._fill(variable, copy) for variable, copy in self._copies.items()]
        self._op(self._node.op, *self._values, *self._controls, *filled)
        update = self._last
        for attribute, value in self._node.attr.items():
            update.attr[attribute].CopyFrom(value)
        update.attr["T" if "T" in update.attr else "dtype"].type = _FLOAT
        assigned = [self._assign(variable, copy, update.name) for variable, copy in self._copies.items()]
        new_node = node_def_pb2.NodeDef(name=self._node.name, op="NoOp", input=assigned, device=self._node.device)
        for attribute, value in self._node.attr.items():
            if attribute.startswith("_"):
                new_node.attr[attribute].CopyFrom(value)
        return new_node

    def _fill(self, variable: str, copy: str) -> str:
        value = self._op(vocabulary.READ_VARIABLE, variable, *self._controls, dtype=_HALF)
        wide = self._writer.cast(value, _FLOAT, self._node.name, self._node)
        self._op("AssignVariableOp", copy, wide, dtype=_FLOAT)
        return f"^{self._last.name}"

    def _assign(self, variable: str, copy: str, update: str) -> str:
        """Sets a variable to its copy's value; finite ones within the range of float16."""
        value = self._op(vocabulary.READ_VARIABLE, copy, f"^{update}", dtype=_FLOAT)
        limits = [self._writer.constant(limit, self._node.name, self._node) for limit in (-_FLOAT16_MAX, _FLOAT16_MAX)]
        within = self._op("ClipByValue", value, *limits, T=_FLOAT)
        kept = self._op("SelectV2", self._op("IsFinite", value, T=_FLOAT), within, value, T=_FLOAT)
        half = self._writer.cast(kept, _HALF, self._node.name, self._node)
        self._op("AssignVariableOp", variable, half, dtype=_HALF)
        return f"^{self._last.name}"

    @property
    def _last(self) -> node_def_pb2.NodeDef:
        return self._writer.nodes[-1]

    def _op(self, op: str, *inputs: str, **types: int) -> str:
        return self._writer.op(op, inputs, self._node.name, self._node, **types)
