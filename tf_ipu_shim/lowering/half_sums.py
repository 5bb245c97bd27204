"""Sums of halves in programs that run by kernels: added up in float32, as XLA does and as an IPU does.

TensorFlow's kernels add halves up as halves: a mean is inf where the sum of its elements is out of range, and a sum of
thousands of elements loses digits.
"""

from __future__ import annotations

from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2

_HALVES = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16})
_SUMS = frozenset({"Sum", "Mean", "Prod", "BiasAddGrad"})


def added_up_in_float32(function: function_pb2.FunctionDef) -> dict[str, node_def_pb2.NodeDef]:
    """Has the sums, means and products of a function's halves take float32 and give halves.

    Args:
        function: changed.

    Returns:
        For each op that was added the one that it belongs to, which messages name.
    """
    narrowed: dict[str, str] = {}
    added: dict[str, node_def_pb2.NodeDef] = {}
    for node in list(function.node_def):
        kind = node.attr["T"].type if node.op in _SUMS else types_pb2.DT_INVALID
        if kind not in _HALVES:
            continue
        wide = _cast(function, f"{node.name}/wide", node.input[0], kind, types_pb2.DT_FLOAT)
        # Its control inputs are kept: they come behind the data.
        node.input[0], node.attr["T"].type = wide, types_pb2.DT_FLOAT
        result = f"{node.name}:output:0"
        narrowed[result] = _cast(function, f"{node.name}/narrow", result, types_pb2.DT_FLOAT, kind)
        added.update({f"{node.name}/wide": node, f"{node.name}/narrow": node})
    casts = set(narrowed.values())
    for node in function.node_def:
        if f"{node.name}:y:0" not in casts:
            _replace(node, narrowed)
    for name, tensor in list(function.ret.items()):
        function.ret[name] = narrowed.get(tensor, tensor)
    return added


def _cast(function: function_pb2.FunctionDef, name: str, tensor: str, source: int, target: int) -> str:
    node = function.node_def.add(name=name, op="Cast", input=[tensor])
    node.attr["SrcT"].type, node.attr["DstT"].type = source, target
    return f"{name}:y:0"


def _replace(node: node_def_pb2.NodeDef, tensors: dict[str, str]) -> None:
    for index, text in enumerate(node.input):
        node.input[index] = tensors.get(text, text)
