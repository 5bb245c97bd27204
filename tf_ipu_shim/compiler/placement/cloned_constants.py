"""Finds small constant expressions, which are cloned to every IPU that needs them instead of exchanged."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node

# Shape arithmetic. Cloning one costs nothing: XLA folds it when it compiles.
_FOLDABLE = frozenset(
    (
        "Add AddV2 BroadcastArgs BroadcastGradientArgs Cast ConcatOffset ConcatV2 ExpandDims Fill FloorDiv FloorMod "
        "GatherV2 Identity InvertPermutation Maximum Minimum Mul Pack Prod Range RealDiv Reshape Select SelectV2 "
        "Slice Squeeze StridedSlice Sub Transpose Unpack ZerosLike OnesLike"
    ).split()
)


def constant_nodes(graph: FunctionGraph) -> set[Node]:
    """Returns the nodes with constant values that may be cloned into several programs.

    Only nodes without control edges qualify: a clone may then run at any time.
    """
    constant: set[Node] = set()
    for node in graph.nodes:
        if node.controls:
            continue
        if is_constant(node.op, [producer in constant for producer in node.producers]):
            if not op_types.is_stateful(node.op):
                constant.add(node)
    return constant


def is_constant(op: str, inputs: Sequence[bool]) -> bool:
    """Returns whether an op's value is known before anything runs.

    Example:
        >>> is_constant("Fill", [True, True]), is_constant("Fill", [True, False])
        (True, False)
    """
    return op == "Const" or (is_foldable(op) and bool(inputs) and all(inputs))


def is_foldable(op: str) -> bool:
    """Returns whether an op is shape arithmetic, which XLA folds if its inputs are constants.

    Example:
        >>> is_foldable("Pack"), is_foldable("MatMul")
        (True, False)
    """
    return op in _FOLDABLE
