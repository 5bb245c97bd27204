"""Marks variables that this package's ops keep between their steps: accesses to these stay in the script's order.

A script does not see them, so stock TensorFlow has no order for them. In the order of stock's names one op would read
between the read and the write of another, whose update would be lost.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2

_HANDLE = "VarHandleOp"


def internal(variable: Any) -> Any:
    """Marks a variable, or the handle of one; returns it."""
    handle = getattr(variable, "handle", variable)
    if not isinstance(handle, ops.EagerTensor):  # where ops run at once, they run in order
        tf_graphs.set_attr(handle.op, vocabulary.INTERNAL_ATTRIBUTE, attr_value_pb2.AttrValue(b=True))
    return variable


def variable_of(tensor: Any) -> Hashable:
    """Returns an identity that all handles of one variable in a program share."""
    origin = _origin(tensor)
    if isinstance(origin, ops.EagerTensor) or origin.op.type != _HANDLE:
        return id(origin)
    attributes = origin.op.node_def.attr
    return attributes["container"].s, attributes["shared_name"].s or origin.op.name


def keeps_script_order(op: ops.Operation) -> bool:
    """Returns whether an op accesses a marked variable, or reads an element of a feed."""
    if op.type in vocabulary.INFEEDS:
        return True
    origins = [_origin(tensor) for tensor in op.inputs if tensor.dtype == dtypes.resource]
    return any(
        not isinstance(origin, ops.EagerTensor) and vocabulary.INTERNAL_ATTRIBUTE in origin.op.node_def.attr
        for origin in origins
    )


def _origin(tensor: Any) -> Any:
    """Returns the tensor outside of all functions behind a captured one."""
    while not isinstance(tensor, ops.EagerTensor):
        outer = next((outer for outer, inner in getattr(tensor.graph, "captures", ()) if inner is tensor), None)
        if outer is None:
            break
        tensor = outer
    return tensor
