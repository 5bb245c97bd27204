"""Applies XLA's out-of-bounds semantics (clamp, drop, NaN) in op-by-op execution.

TensorFlow's kernels refuse an index or a label that is out of range. A program on an IPU checks nothing: it reads the
nearest row, leaves an update out, or returns NaN for an invalid label. So that results do not depend on the execution
mode, such inputs are clamped first. If a script's environment selects kernels by name, they raise errors, which helps
to find bad input.

Input that is in range passes unchanged, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, producer_name
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_INDEX_TYPES = frozenset({types_pb2.DT_INT32, types_pb2.DT_INT64})
_BOOL = types_pb2.DT_BOOL

Nodes = Mapping[str, node_def_pb2.NodeDef]


def guard_inputs(node: node_def_pb2.NodeDef, nodes: Nodes) -> list[node_def_pb2.NodeDef]:
    """Returns the ops that make an op's inputs valid, as XLA treats them, and the changed op."""
    guard = _GUARDS.get(node.op)
    if guard is None:
        return []
    added = _InsertedOps(node)
    guard(node, nodes, added)
    return added.nodes


class _InsertedOps:
    """Ops that are inserted before another one."""

    def __init__(self, node: node_def_pb2.NodeDef) -> None:
        self._prefix = f"{node.name}/in_range"
        self._controls = control_inputs(node)
        self.nodes: list[node_def_pb2.NodeDef] = []

    def op(self, op: str, output: str, *inputs: str, **types: int) -> str:
        """Adds an op with type attributes; returns its result."""
        node = node_def_pb2.NodeDef(name=f"{self._prefix}_{len(self.nodes)}", op=op, input=inputs)
        for attribute, kind in types.items():
            node.attr[attribute].type = kind
        if op == "GatherV2":
            node.attr["batch_dims"].i = 0
        self.nodes.append(node)
        return f"{node.name}:{output}:0"

    def variable_shape(self, variable: str, kind: int) -> str:
        """Adds a read of a variable's shape, after all that the op waits for: an assignment may be among it."""
        return self.op("VariableShape", "output", variable, *self._controls, out_type=kind)

    def constant(self, value: float, kind: int, shape: tuple[int, ...] = ()) -> str:
        """Adds a constant."""
        tensor = self.op("Const", "output", dtype=kind)
        filled = np.full(shape, value, dtypes.as_dtype(kind).as_numpy_dtype)
        self.nodes[-1].attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(filled))
        return tensor

    def size(self, shape: str, axis: int, kind: int) -> str:
        """Adds ops that extract one dimension of a shape."""
        where, zero = self.constant(axis, types_pb2.DT_INT32), self.constant(0, types_pb2.DT_INT32)
        types = {"Tparams": kind, "Tindices": types_pb2.DT_INT32, "Taxis": types_pb2.DT_INT32}
        return self.op("GatherV2", "output", shape, where, zero, **types)

    def clipped(self, indices: str, size: str, kind: int) -> str:
        """Adds ops that clip indices to [0, size)."""
        last = self.op("Sub", "z", size, self.constant(1, kind), T=kind)
        return self.op("ClipByValue", "output", indices, self.constant(0, kind), last, T=kind)


def _gather(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    kind, axis = node.attr["Tindices"].type, _constant(node.input[2], nodes)
    if kind not in _INDEX_TYPES or axis is None or axis < 0:
        return
    shape = added.op("Shape", "output", node.input[0], T=node.attr["Tparams"].type, out_type=kind)
    node.input[1] = added.clipped(node.input[1], added.size(shape, axis, kind), kind)


def _variable_gather(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    kind = node.attr["Tindices"].type
    if kind in _INDEX_TYPES:
        shape = added.variable_shape(node.input[0], kind)
        node.input[1] = added.clipped(node.input[1], added.size(shape, node.attr["batch_dims"].i, kind), kind)


def _labels(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes the loss and gradient of an out-of-range label NaN."""
    types = {"T": node.attr["T"].type, "Tlabels": node.attr["Tlabels"].type}
    features = added.op(vocabulary.LABELS_IN_RANGE, "features_in_range", *node.input[:2], **types)
    node.input[:2] = [features, features.replace(":features_", ":labels_")]


def _segments(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Shifts negative segment ids to values that the kernels drop."""
    ids, count = node.input[1:3]
    kind, counted = node.attr["Tindices"].type, node.attr["Tnumsegments"].type
    if counted != kind:
        count = added.op("Cast", "y", count, SrcT=counted, DstT=kind)
    in_range = added.op("Less", "z", ids, count, T=kind)
    node.input[1] = added.op("SelectV2", "output", in_range, ids, added.constant(-1, kind), T=kind)


def _updates(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes updates of out-of-range rows zero."""
    variable, indices, updates = node.input[:3]
    kind, dtype = node.attr["Tindices"].type, node.attr["dtype"].type
    shape = added.variable_shape(variable, types_pb2.DT_INT32)
    rows = added.size(shape, 0, types_pb2.DT_INT32)
    if kind != types_pb2.DT_INT32:
        rows = added.op("Cast", "y", rows, SrcT=types_pb2.DT_INT32, DstT=kind)
    clipped = added.clipped(indices, rows, kind)
    good = added.op("Equal", "z", indices, clipped, T=kind)
    # As many axes behind the rows' own as an update has.
    more = added.op(
        "Sub", "z", added.op("Rank", "output", updates, T=dtype), added.op("Rank", "output", indices, T=kind),
        T=types_pb2.DT_INT32,
    )  # fmt: skip
    ones = added.op(
        "Fill", "output",
        added.op("ExpandDims", "output", more, added.constant(0, types_pb2.DT_INT32), T=types_pb2.DT_INT32,
                 Tdim=types_pb2.DT_INT32),
        added.constant(1, types_pb2.DT_INT32), T=types_pb2.DT_INT32, index_type=types_pb2.DT_INT32,
    )  # fmt: skip
    indices_shape = added.op("Shape", "output", indices, T=kind, out_type=types_pb2.DT_INT32)
    axes = added.op(
        "ConcatV2", "output", indices_shape, ones, added.constant(0, types_pb2.DT_INT32), T=types_pb2.DT_INT32,
        Tidx=types_pb2.DT_INT32,
    )  # fmt: skip
    added.nodes[-1].attr["N"].i = 2
    column = added.op("Reshape", "output", good, axes, T=_BOOL, Tshape=types_pb2.DT_INT32)
    node.input[1] = clipped
    node.input[2] = added.op("SelectV2", "output", column, updates, added.constant(0, dtype), T=dtype)


def _slice(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Moves the begin of a slice that would cross the end; both modes refuse a constant one."""
    values, begin, size = node.input[:3]
    kind, sizes = node.attr["Index"].type, _array(size, nodes)
    if kind not in _INDEX_TYPES or sizes is None or (sizes < 0).any() or _array(begin, nodes) is not None:
        return
    shape = added.op("Shape", "output", values, T=node.attr["T"].type, out_type=kind)
    last = added.op("Sub", "z", shape, size, T=kind)
    least = added.op("Minimum", "z", begin, last, T=kind)
    node.input[1] = added.op("Maximum", "z", least, added.constant(0, kind), T=kind)


def _propagate_nan(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Propagates NaN as XLA does."""
    node.op = "Identity"
    del node.attr["message"]


def _replace_zero_divisor(node: node_def_pb2.NodeDef, added: _InsertedOps) -> str:
    """Makes zero divisors 1; returns the tensor that tells where they were zero."""
    divisor, kind = node.input[1], node.attr["T"].type
    is_zero = added.op("Equal", "z", divisor, added.constant(0, kind), T=kind)
    node.input[1] = added.op("SelectV2", "output", is_zero, added.constant(1, kind), divisor, T=kind)
    return is_zero


def _quotient(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes integer division by 0 return all bits set; floor division one less for negative operands."""
    if _cannot_be_zero(node, nodes):
        return
    value, kind = node.input[0], node.attr["T"].type
    is_zero = _replace_zero_divisor(node, added)
    quotient = added.constant(-1 if _is_signed(kind) else np.iinfo(_numpy(kind)).max, kind)
    if node.op == "FloorDiv" and _is_signed(kind):
        is_negative = added.op("Less", "z", value, added.constant(0, kind), T=kind)
        quotient = added.op("SelectV2", "output", is_negative, added.constant(-2, kind), quotient, T=kind)
    node.input[0] = added.op("SelectV2", "output", is_zero, quotient, value, T=kind)


def _remainder(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes an integer's remainder by 0 the integer."""
    if _cannot_be_zero(node, nodes):
        return
    value, kind = node.input[0], node.attr["T"].type
    is_zero = _replace_zero_divisor(node, added)
    node.input[:2] = [
        added.op(node.op, "z", value, node.input[1], T=kind),
        added.op("SelectV2", "output", is_zero, value, added.constant(0, kind), T=kind),
    ]
    node.op = "AddV2"


_GUARDS: dict[str, Callable[[node_def_pb2.NodeDef, Nodes, _InsertedOps], None]] = {
    "GatherV2": _gather,
    "ResourceGather": _variable_gather,
    "Slice": _slice,
    "SparseSoftmaxCrossEntropyWithLogits": _labels,
    **dict.fromkeys((f"UnsortedSegment{kind}" for kind in ("Sum", "Max", "Min", "Prod")), _segments),
    **dict.fromkeys(("ResourceScatterAdd", "ResourceScatterSub"), _updates),
    "CheckNumerics": _propagate_nan,
    **dict.fromkeys(("Div", "FloorDiv", "TruncateDiv"), _quotient),
    **dict.fromkeys(("Mod", "FloorMod", "TruncateMod"), _remainder),
}


def _cannot_be_zero(node: node_def_pb2.NodeDef, nodes: Nodes) -> bool:
    """Returns whether a division is of floats or has a constant divisor without 0."""
    divisor = _array(node.input[1], nodes)
    return _numpy(node.attr["T"].type).kind not in "iu" or (divisor is not None and bool(divisor.all()))


def _is_signed(kind: int) -> bool:
    return _numpy(kind).kind == "i"


def _numpy(kind: int) -> np.dtype:
    return np.dtype(dtypes.as_dtype(kind).as_numpy_dtype)


def _constant(tensor_name: str, nodes: Nodes) -> int | None:
    value = _array(tensor_name, nodes)
    return None if value is None else int(value)


def _array(tensor_name: str, nodes: Nodes) -> np.ndarray | None:
    """Returns the value of a constant tensor of a function."""
    node = nodes.get(producer_name(tensor_name))
    while node is not None and node.op == "Identity":
        node = nodes.get(producer_name(node.input[0]))
    return tensor_util.MakeNdarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None
