"""Runs updates of float16 variables on float32 copies, whose squares and products do not overflow.

A copy is a separate variable that nothing else refers to. XLA has none, so programs with copies run in mode `kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_annotations, is_control
from tf_ipu_shim.compiler.ir.node_writer import NodeWriter
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_HALF, _FLOAT = types_pb2.DT_HALF, types_pb2.DT_FLOAT
_FLOAT16_MAX = np.float32(65504)
# TensorFlow's name of handles that own their variable: `ResourceHandle::ANONYMOUS_NAME`, on 2.15.1 and 2.21.0.
_WITHOUT_NAME = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def cast_half(writer: NodeWriter, tensor: str, to: int, name: str, like: node_def_pb2.NodeDef | None = None) -> str:
    """Casts a tensor between float16 and float32."""
    return writer.op("Cast", [tensor], name, like, SrcT=_HALF if to == _FLOAT else _FLOAT, DstT=to)


def is_copy(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op makes a variable that nothing else refers to."""
    return node.op == "VarHandleOp" and node.attr["shared_name"].s == _WITHOUT_NAME


def update_float32_copies(
    writer: NodeWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]
) -> node_def_pb2.NodeDef:
    """Writes an update of float16 variables as the same update of copies."""
    return _Update(writer, node, inputs).write()


class _Update:
    """The ops that replace an update; see `update_float32_copies`."""

    def __init__(self, writer: NodeWriter, node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> None:
        self._writer, self._node = writer, node
        values = [tensor_name for tensor_name in inputs if not is_control(tensor_name)]
        self._controls = [tensor_name for tensor_name in inputs if is_control(tensor_name)]
        types = op_types.input_types(node)
        self._copies: dict[str, str] = {}  # handles by the variable's
        for variable, kind in zip(values, types):
            if kind == op_types.RESOURCE and variable not in self._copies:
                self._copies[variable] = self._op("VarHandleOp", dtype=_FLOAT)
                self._writer.last.attr["shared_name"].s = _WITHOUT_NAME
                self._writer.last.attr["shape"].shape.unknown_rank = True
        self._values = [self._copies.get(tensor_name, tensor_name) for tensor_name in values]

    def write(self) -> node_def_pb2.NodeDef:
        """Writes them; returns the last."""
        filled = [self._fill(variable, copy) for variable, copy in self._copies.items()]
        self._op(self._node.op, *self._values, *self._controls, *filled)
        update = self._writer.last
        for attribute, value in self._node.attr.items():
            update.attr[attribute].CopyFrom(value)
        update.attr["T" if "T" in update.attr else "dtype"].type = _FLOAT
        assigned = [self._assign(variable, copy, update.name) for variable, copy in self._copies.items()]
        new_node = node_def_pb2.NodeDef(name=self._node.name, op="NoOp", input=assigned, device=self._node.device)
        copy_annotations(self._node, new_node)
        return new_node

    def _fill(self, variable: str, copy: str) -> str:
        value = self._op(vocabulary.READ_VARIABLE, variable, *self._controls, dtype=_HALF)
        wide = cast_half(self._writer, value, _FLOAT, self._node.name, self._node)
        self._op("AssignVariableOp", copy, wide, dtype=_FLOAT)
        return f"^{self._writer.last.name}"

    def _assign(self, variable: str, copy: str, update: str) -> str:
        """Sets a variable to its copy's value; finite ones within the range of float16."""
        value = self._op(vocabulary.READ_VARIABLE, copy, f"^{update}", dtype=_FLOAT)
        limits = [self._writer.constant(limit, self._node.name, self._node) for limit in (-_FLOAT16_MAX, _FLOAT16_MAX)]
        within = self._op("ClipByValue", value, *limits, T=_FLOAT)
        kept = self._op("SelectV2", self._op("IsFinite", value, T=_FLOAT), within, value, T=_FLOAT)
        half = cast_half(self._writer, kept, _HALF, self._node.name, self._node)
        self._op("AssignVariableOp", variable, half, dtype=_HALF)
        return f"^{self._writer.last.name}"

    def _op(self, op: str, *inputs: str, **types: int) -> str:
        return self._writer.op(op, inputs, self._node.name, self._node, **types)
