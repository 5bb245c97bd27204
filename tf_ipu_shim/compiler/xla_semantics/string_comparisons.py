"""Folds comparisons of constant strings, because XLA has no strings.

`tf.debugging.assert_equal(op.type, "MatMul")` in a function is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, control_inputs
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_COMPARISONS: dict[str, Callable[..., Any]] = {"Equal": np.equal, "NotEqual": np.not_equal}


def fold_comparisons(functions: Functions) -> None:
    """Replaces `Equal` and `NotEqual` of constant strings by constants."""
    for name in functions.reached():
        if not functions[name].ops.isdisjoint(_COMPARISONS):
            functions[name].rewrite(_folded)


def _folded(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
    if node.op not in _COMPARISONS or node.proto.attr["T"].type != types_pb2.DT_STRING:
        return None
    values = [_constant(producer) for producer in node.producers]
    if any(value is None for value in values):
        return None
    try:
        result = np.asarray(_COMPARISONS[node.op](*values))
    except ValueError:  # shapes that do not broadcast, which the op itself reports
        return None
    folded = constant(f"{node.name}/folded", result, types_pb2.DT_BOOL, node.proto)
    # Its result is called `z`, as the comparison's, by what takes it.
    same = node_def_pb2.NodeDef(name=node.name, op="LogicalAnd", device=node.proto.device)
    same.input.extend([f"{folded.name}:output:0"] * 2)
    same.input.extend(control_inputs(node.proto))
    return [folded, same]


def _constant(node: Node | None) -> np.ndarray | None:
    while node is not None and node.op in vocabulary.IDENTITIES and len(node.producers) == 1:
        node = node.producers[0]
    return tensor_util.MakeNdarray(node.proto.attr["value"].tensor) if node is not None and node.op == "Const" else None
