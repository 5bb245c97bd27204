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
from tf_ipu_shim.compiler.ir.node_writer import NodeWriter
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_INT32 = types_pb2.DT_INT32
_INDEX_TYPES = frozenset({_INT32, types_pb2.DT_INT64})
_BOOL = types_pb2.DT_BOOL

Nodes = Mapping[str, node_def_pb2.NodeDef]


def guard_inputs(function: function_pb2.FunctionDef) -> None:
    """Adds ops to a function that make its ops' inputs valid, as XLA treats them."""
    nodes = {node.name: node for node in function.node_def}
    writer = NodeWriter(function, "in_range")
    for node in nodes.values():
        if node.op in _GUARDS:
            _GUARDS[node.op](node, nodes, _InsertedOps(node, writer))
    function.node_def.extend(writer.nodes)


class _InsertedOps:
    """Ops that are inserted before another one."""

    def __init__(self, node: node_def_pb2.NodeDef, writer: NodeWriter) -> None:
        self._name = node.name
        self._controls = control_inputs(node)
        self.writer = writer

    def op(self, op: str, *inputs: str, **types: int) -> str:
        """Adds an op with type attributes; returns its result."""
        return self.writer.op(op, inputs, self._name, **types)

    def variable_shape(self, variable: str, kind: int) -> str:
        """Adds a read of a variable's shape, after all that the op waits for: an assignment may be among it."""
        return self.op("VariableShape", variable, *self._controls, out_type=kind)

    def constant(self, value: float, kind: int) -> str:
        """Adds a constant."""
        return self.writer.constant(_numpy(kind).type(value), self._name)

    def size(self, shape: str, axis: int, kind: int) -> str:
        """Adds ops that extract one dimension of a shape."""
        where, zero = self.constant(axis, _INT32), self.constant(0, _INT32)
        types = {"Tparams": kind, "Tindices": _INT32, "Taxis": _INT32}
        return self.op("GatherV2", shape, where, zero, **types)

    def clipped(self, indices: str, size: str, kind: int) -> str:
        """Adds ops that clip indices to [0, size)."""
        last = self.op("Sub", size, self.constant(1, kind), T=kind)
        return self.op("ClipByValue", indices, self.constant(0, kind), last, T=kind)


def _gather(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    kind, axis = node.attr["Tindices"].type, _constant(node.input[2], nodes)
    if kind not in _INDEX_TYPES or axis is None or axis < 0:
        return
    shape = added.op("Shape", node.input[0], T=node.attr["Tparams"].type, out_type=kind)
    node.input[1] = added.clipped(node.input[1], added.size(shape, axis, kind), kind)


def _variable_gather(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    kind = node.attr["Tindices"].type
    if kind in _INDEX_TYPES:
        shape = added.variable_shape(node.input[0], kind)
        node.input[1] = added.clipped(node.input[1], added.size(shape, node.attr["batch_dims"].i, kind), kind)


def _labels(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes the loss and gradient of an out-of-range label NaN."""
    types = {"T": node.attr["T"].type, "Tlabels": node.attr["Tlabels"].type}
    features = added.op(vocabulary.LABELS_IN_RANGE, *node.input[:2], **types)
    node.input[:2] = [features, features.replace(":features_", ":labels_")]


def _segments(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Shifts negative segment ids to values that the kernels drop."""
    ids, count = node.input[1:3]
    kind, counted = node.attr["Tindices"].type, node.attr["Tnumsegments"].type
    if counted != kind:
        count = added.op("Cast", count, SrcT=counted, DstT=kind)
    in_range = added.op("Less", ids, count, T=kind)
    node.input[1] = added.op("SelectV2", in_range, ids, added.constant(-1, kind), T=kind)


def _updates(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes updates of out-of-range rows zero."""
    variable, indices, updates = node.input[:3]
    kind, dtype = node.attr["Tindices"].type, node.attr["dtype"].type
    shape = added.variable_shape(variable, _INT32)
    rows = added.size(shape, 0, _INT32)
    if kind != _INT32:
        rows = added.op("Cast", rows, SrcT=_INT32, DstT=kind)
    clipped = added.clipped(indices, rows, kind)
    good = added.op("Equal", indices, clipped, T=kind)
    # As many axes behind the rows' own as an update has.
    more = added.op("Sub", added.op("Rank", updates, T=dtype), added.op("Rank", indices, T=kind), T=_INT32)
    axis, one = added.constant(0, _INT32), added.constant(1, _INT32)
    count = added.op("ExpandDims", more, axis, T=_INT32, Tdim=_INT32)
    ones = added.op("Fill", count, one, T=_INT32, index_type=_INT32)
    indices_shape = added.op("Shape", indices, T=kind, out_type=_INT32)
    axes = added.op("ConcatV2", indices_shape, ones, axis, T=_INT32, Tidx=_INT32)
    added.writer.last.attr["N"].i = 2
    column = added.op("Reshape", good, axes, T=_BOOL, Tshape=_INT32)
    node.input[1] = clipped
    node.input[2] = added.op("SelectV2", column, updates, added.constant(0, dtype), T=dtype)


def _slice(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Moves the begin of a slice that would cross the end; both modes refuse a constant one."""
    values, begin, size = node.input[:3]
    kind, sizes = node.attr["Index"].type, _array(size, nodes)
    if kind not in _INDEX_TYPES or sizes is None or (sizes < 0).any() or _array(begin, nodes) is not None:
        return
    shape = added.op("Shape", values, T=node.attr["T"].type, out_type=kind)
    last = added.op("Sub", shape, size, T=kind)
    least = added.op("Minimum", begin, last, T=kind)
    node.input[1] = added.op("Maximum", least, added.constant(0, kind), T=kind)


def _propagate_nan(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Propagates NaN as XLA does."""
    node.op = "Identity"
    del node.attr["message"]


def _replace_zero_divisor(node: node_def_pb2.NodeDef, added: _InsertedOps) -> str:
    """Makes zero divisors 1; returns the tensor that tells where they were zero."""
    divisor, kind = node.input[1], node.attr["T"].type
    is_zero = added.op("Equal", divisor, added.constant(0, kind), T=kind)
    node.input[1] = added.op("SelectV2", is_zero, added.constant(1, kind), divisor, T=kind)
    return is_zero


def _quotient(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes integer division by 0 return all bits set; floor division one less for negative operands."""
    if _cannot_be_zero(node, nodes):
        return
    value, kind = node.input[0], node.attr["T"].type
    is_zero = _replace_zero_divisor(node, added)
    quotient = added.constant(-1 if _is_signed(kind) else np.iinfo(_numpy(kind)).max, kind)
    if node.op == "FloorDiv" and _is_signed(kind):
        is_negative = added.op("Less", value, added.constant(0, kind), T=kind)
        quotient = added.op("SelectV2", is_negative, added.constant(-2, kind), quotient, T=kind)
    node.input[0] = added.op("SelectV2", is_zero, quotient, value, T=kind)


def _remainder(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes an integer's remainder by 0 the integer."""
    if _cannot_be_zero(node, nodes):
        return
    value, kind = node.input[0], node.attr["T"].type
    is_zero = _replace_zero_divisor(node, added)
    node.input[:2] = [
        added.op(node.op, value, node.input[1], T=kind),
        added.op("SelectV2", is_zero, value, added.constant(0, kind), T=kind),
    ]
    node.op = "AddV2"


def _power(node: node_def_pb2.NodeDef, nodes: Nodes, added: _InsertedOps) -> None:
    """Makes an integer's negative power 0, and exact of 1 and -1; XLA of TensorFlow 2.15 returns 0 for -1, too."""
    value, exponent = node.input[:2]  # what it waits for comes after them
    kind, known = node.attr["T"].type, _array(exponent, nodes)
    if not _is_signed(kind) or (known is not None and bool((known >= 0).all())):
        return
    zero = added.constant(0, kind)
    is_negative = added.op("Less", exponent, zero, T=kind)
    size = added.op("Abs", value, T=kind)
    is_exact = added.op("Equal", size, added.constant(1, kind), T=kind)
    power = added.op("SelectV2", is_exact, value, zero, T=kind)
    node.input[0] = added.op("SelectV2", is_negative, power, value, T=kind)
    node.input[1] = added.op("Abs", exponent, T=kind)


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
    "Pow": _power,
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
