"""Replaces ops that XLA miscompiles by functions of ops that it compiles correctly.

XLA does so silently, or ends the process. `make soak` found these ops by running all of them on IPUs and on the CPU.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tf_ipu_shim.compiler.ir import op_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_annotations, copy_node
from tf_ipu_shim.compiler.ir.op_functions import Original, Replacement
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import (
    array_ops,
    array_ops_stack,
    assert_op,
    clip_ops,
    gen_array_ops,
    math_ops,
)
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

# Made after TensorFlow 2.6. XLA checks no scales, and clips in another order.
_QUANTIZED = frozenset(
    {"UniformDequantize", "UniformQuantize", "UniformQuantizedAdd", "UniformQuantizedClipByValue", "UniformRequantize"}
)
_COMPLEX = frozenset({types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128})


def replace_miscompiled_ops(functions: Functions) -> None:
    """Replaces ops that XLA computes incorrectly."""
    op_functions.replace_ops(functions, _RULES)
    for name in functions.reached():
        if not functions[name].ops.isdisjoint(_SAMPLERS):
            functions[name].rewrite(_classes)


def find_miscompiled_ops(nodes: Iterable[node_def_pb2.NodeDef]) -> list[str]:
    """Returns the names of ops that XLA computes incorrectly and that have no replacement."""
    return [node.name for node in nodes if _is_miscompiled(node)]


def _is_miscompiled(node: node_def_pb2.NodeDef) -> bool:
    if node.op == "SelfAdjointEigV2":
        return node.attr["T"].type in _COMPLEX
    if node.op == "ResizeBilinearGrad":
        return node.attr["T"].type == types_pb2.DT_DOUBLE
    return node.op in _QUANTIZED


def _transpose(node: Node) -> Replacement | None:
    """XLA turns real tensors into complex ones and returns their bytes."""
    if node.proto.attr["T"].type in _COMPLEX:
        return None
    return Replacement(lambda _, x, perm: [gen_array_ops.transpose(x, perm)])


def _bincount(_: Node) -> Replacement:
    """XLA counts each row of a matrix separately, as `DenseBincount` does; `Bincount` counts all elements."""

    def build(original: Original, elements: Any, size: Any, weights: Any) -> list[Any]:
        return original(array_ops.reshape(elements, [-1]), size, array_ops.reshape(weights, [-1]))

    return Replacement(build)


def _classes(node: Node) -> list[node_def_pb2.NodeDef] | None:
    """XLA draws from no classes: adds a slice of the first class, which XLA and kernels refuse then.

    The op keeps its name, from which its seed is derived.
    """
    if node.op not in _SAMPLERS:
        return None

    def build(_: Original, logits: Any) -> list[Any]:
        first, others = array_ops.slice(logits, [0, 0], [-1, 1]), array_ops.slice(logits, [0, 1], [-1, -1])
        return [array_ops.concat([first, others], 1)]

    added, (logits,), _ = op_functions.inline(node.proto, Replacement(build, num_inputs=1))
    for new_node in added:
        copy_annotations(node.proto, new_node)
    return [*added, copy_node(node.proto, [logits, *node.proto.input[1:]])]


def _resize_gradient(node: Node) -> Replacement | None:
    """XLA returns float32 bytes if the image and its gradient are 16-bit."""
    kind = node.proto.attr["T"].type
    if kind not in (types_pb2.DT_HALF, types_pb2.DT_BFLOAT16):
        return None

    def build(original: Original, gradient: Any, image: Any) -> list[Any]:
        (result,) = original(gradient, math_ops.cast(image, types_pb2.DT_FLOAT), T=types_pb2.DT_FLOAT)
        return [math_ops.cast(result, kind)]

    return Replacement(build)


def _diagonals(node: Node) -> Replacement | None:
    """XLA crashes the process on runtime diagonals outside the matrix."""
    position = _DIAGONALS[node.op]
    producer = node.producers[position]
    if producer is not None and producer.op == "Const":
        return None  # TensorFlow has checked it when it made the op

    def build(original: Original, *inputs: Any) -> list[Any]:
        low, high = _checked_diagonals(f"{node.op} {node.name}", array_ops.shape(inputs[0]), inputs[position])
        return original(*inputs[:position], array_ops_stack.stack([low, high]), *inputs[position + 1 :])

    return Replacement(build)


def _enough_boxes(_: Node) -> Replacement:
    """XLA refuses, or crashes on, fewer boxes than may be chosen: pads with boxes that are never chosen.

    It does not compile 16-bit floats together with 32-bit ones, which its own constants are.
    """

    def build(original: Original, boxes: Any, scores: Any, box_count: Any, overlap: Any, least: Any) -> list[Any]:
        missing = math_ops.maximum(math_ops.maximum(box_count, 1) - array_ops.shape(boxes)[0], 0)
        boxes, scores, overlap, least = (
            math_ops.cast(operand, types_pb2.DT_FLOAT) for operand in (boxes, scores, overlap, least)
        )
        boxes = array_ops.pad(boxes, [[0, missing], [0, 0]])
        scores = array_ops.pad(scores, [[0, missing]], constant_values=-np.inf)
        types = dict.fromkeys(("T", "T_threshold"), types_pb2.DT_FLOAT)
        selected, *count = original(boxes, scores, box_count, overlap, least, **types)
        if not count:
            return [selected]
        # Positions without a box have any index where XLA chooses, and 0 where the kernel does.
        is_chosen = math_ops.range(array_ops.shape(selected)[0]) < count[0]
        return [selected * math_ops.cast(is_chosen, types_pb2.DT_INT32), *count]

    return Replacement(build)


def _checked_diagonals(op: str, shape: Any, k: Any) -> tuple[Any, Any]:
    """Returns the lowest and highest diagonal clamped to the matrix; out-of-range ones stop the run."""
    rows, columns, diagonals = shape[-2], shape[-1], array_ops.reshape(k, [-1])
    low = clip_ops.clip_by_value(diagonals[0], 1 - rows, columns - 1)
    high = clip_ops.clip_by_value(diagonals[-1], low, columns - 1)
    are_there = math_ops.logical_and(math_ops.equal(diagonals[0], low), math_ops.equal(diagonals[-1], high))
    message = f"{op}: diagonals that are out of bound for a matrix of (rows, columns)"
    with ops.control_dependencies([assert_op(are_there, [message, rows, columns, "k", diagonals])]):
        return array_ops.identity(low), array_ops.identity(high)


# The input that has the diagonals.
_DIAGONALS = {"MatrixDiagPartV2": 1, "MatrixDiagPartV3": 1, "MatrixSetDiagV2": 2, "MatrixSetDiagV3": 2}
_SAMPLERS = frozenset({"Multinomial", "StatelessMultinomial"})
_RULES: dict[str, op_functions.Rule] = {
    "ConjugateTranspose": _transpose,
    "Bincount": _bincount,
    **dict.fromkeys(_DIAGONALS, _diagonals),
    "ResizeBilinearGrad": _resize_gradient,
    **dict.fromkeys(("NonMaxSuppressionV3", "NonMaxSuppressionV4"), _enough_boxes),
}
