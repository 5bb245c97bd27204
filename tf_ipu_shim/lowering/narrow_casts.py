"""Casts from floating-point numbers to integers of 8 and 16 bits go over 32 bits, so that they wrap around.

-1.0 becomes 255 of uint8 on an IPU, as in TensorFlow's kernels. XLA on the CPU takes the nearest number that there is,
0; what C++ makes of it is undefined.
"""

from __future__ import annotations

from tensorflow.core.framework import node_def_pb2, types_pb2

from tf_ipu_shim.lowering.function_graph import Node
from tf_ipu_shim.lowering.functions import Functions

_NARROW = frozenset({types_pb2.DT_INT8, types_pb2.DT_UINT8, types_pb2.DT_INT16, types_pb2.DT_UINT16})
_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})


def wrap_around(functions: Functions) -> None:
    """Puts a cast to int32 before each cast of floating-point numbers to narrower integers.

    Args:
        functions: the program; changed.
    """
    for name in functions.reached():
        if "Cast" in functions[name].ops:
            functions[name].rewrite(_over_int32)


def _over_int32(node: Node) -> list[node_def_pb2.NodeDef] | None:
    attributes = node.proto.attr
    if node.op != "Cast" or attributes["SrcT"].type not in _FLOATING or attributes["DstT"].type not in _NARROW:
        return None
    first, second = node_def_pb2.NodeDef(), node_def_pb2.NodeDef()
    first.CopyFrom(node.proto)
    second.CopyFrom(node.proto)
    first.name = f"{node.name}/int32"
    first.attr["DstT"].type = types_pb2.DT_INT32
    second.attr["SrcT"].type = types_pb2.DT_INT32
    second.input[0] = f"{first.name}:y:0"
    return [first, second]
