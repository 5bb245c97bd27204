"""Ops of which XLA silently makes something else than TensorFlow's kernels do, written as ops that it does right.

Found by running all ops on IPUs and on the CPU (`make soak`). On 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import numpy as np
from tensorflow.core.framework import node_def_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from tf_ipu_shim.lowering.function_graph import Node
from tf_ipu_shim.lowering.functions import Functions

_COMPLEX = frozenset({types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128})


def write_as_kernels_have_it(functions: Functions) -> None:
    """Replaces such ops.

    Args:
        functions: the program; changed.
    """
    for name in functions.reached():
        if not functions[name].ops.isdisjoint(_RULES):
            functions[name].rewrite(lambda node: _RULES[node.op](node) if node.op in _RULES else None)


def _transpose(node: Node) -> list[node_def_pb2.NodeDef] | None:
    """XLA makes complex numbers of real ones, and gives out their bytes."""
    if node.proto.attr["T"].type in _COMPLEX:
        return None
    plain = node_def_pb2.NodeDef()
    plain.CopyFrom(node.proto)
    plain.op = "Transpose"
    return [plain]


def _bincount(node: Node) -> list[node_def_pb2.NodeDef]:
    """XLA counts each row of a matrix on its own, as `DenseBincount` does; `Bincount` counts everything."""
    counted = node_def_pb2.NodeDef()
    counted.CopyFrom(node.proto)
    # Attributes with an underscore say where an op belongs.
    marks = {name: value for name, value in node.proto.attr.items() if name.startswith("_")}
    row = node_def_pb2.NodeDef(name=f"{node.name}/row", op="Const", device=node.proto.device)
    row.attr["dtype"].type = types_pb2.DT_INT32
    row.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(np.array([-1], np.int32)))
    added = [row]
    for number, kind in ((0, types_pb2.DT_INT32), (2, node.proto.attr["T"].type)):
        flat = node_def_pb2.NodeDef(name=f"{node.name}/flat_{number}", op="Reshape", device=node.proto.device)
        flat.input.extend([node.proto.input[number], f"{row.name}:output:0"])
        flat.attr["T"].type = kind
        flat.attr["Tshape"].type = types_pb2.DT_INT32
        counted.input[number] = f"{flat.name}:output:0"
        added.append(flat)
    for one in added:
        for name, value in marks.items():
            one.attr[name].CopyFrom(value)
    return [*added, counted]


_RULES = {"ConjugateTranspose": _transpose, "Bincount": _bincount}
