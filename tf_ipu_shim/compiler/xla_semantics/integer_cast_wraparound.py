"""Routes casts from floats to narrow integers through wider integers, so that they wrap around.

-1.0 becomes 255 of uint8 on an IPU, as in TensorFlow's kernels on small tensors. On large ones their out-of-range
results depend on an element's position. XLA on the CPU returns the nearest representable number, 0.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_WIDER = {
    types_pb2.DT_INT8: types_pb2.DT_INT32,
    types_pb2.DT_UINT8: types_pb2.DT_INT32,
    types_pb2.DT_INT16: types_pb2.DT_INT32,
    types_pb2.DT_UINT16: types_pb2.DT_INT32,
    types_pb2.DT_UINT32: types_pb2.DT_INT64,
}
_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})


def widen_casts(functions: Functions) -> None:
    """Inserts a cast to a wider integer before each cast from floats to narrow integers."""
    for name in functions.reached():
        if "Cast" in functions[name].ops:
            functions[name].rewrite(_over_wider)


def _over_wider(node: Node) -> list[node_def_pb2.NodeDef] | None:
    attributes = node.proto.attr
    if node.op != "Cast" or attributes["SrcT"].type not in _FLOATING or attributes["DstT"].type not in _WIDER:
        return None
    first, second = copy_node(node.proto), copy_node(node.proto)
    first.name = f"{node.name}/wider"
    wider = _WIDER[attributes["DstT"].type]
    first.attr["DstT"].type = wider
    second.attr["SrcT"].type = wider
    second.input[0] = f"{first.name}:y:0"
    return [first, second]
