"""Rewrites ops that XLA compiles to different results than TensorFlow's kernels.

It does so silently, or ends the process. Found by running all ops on IPUs and on the CPU (`make soak`). On 2.15.1 and
2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tf_ipu_shim.compiler.ir import op_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, copy_annotations, copy_node
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import (
    array_ops,
    array_ops_stack,
    assert_op,
    clip_ops,
    gen_array_ops,
    gen_image_ops,
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
    for name in functions.reached():
        if not functions[name].ops.isdisjoint(_RULES):
            functions[name].rewrite(lambda node: _RULES[node.op](node) if node.op in _RULES else None)
    op_functions.replace_ops(functions, frozenset(_DIAGONALS), _diagonals)
    op_functions.replace_ops(functions, frozenset({"ResizeBilinearGrad"}), _resize_gradient)
    op_functions.replace_ops(functions, frozenset(_SUPPRESSIONS), _enough_boxes)


def find_miscompiled_ops(nodes: Iterable[node_def_pb2.NodeDef]) -> list[str]:
    """Returns the names of ops that XLA computes incorrectly and that have no replacement."""
    return [node.name for node in nodes if _is_miscompiled(node)]


def _is_miscompiled(node: node_def_pb2.NodeDef) -> bool:
    if node.op == "SelfAdjointEigV2":
        return node.attr["T"].type in _COMPLEX
    if node.op == "ResizeBilinearGrad":
        return node.attr["T"].type == types_pb2.DT_DOUBLE
    return node.op in _QUANTIZED


def _transpose(node: Node) -> list[node_def_pb2.NodeDef] | None:
    """XLA turns real tensors into complex ones and returns their bytes."""
    if node.proto.attr["T"].type in _COMPLEX:
        return None
    plain = copy_node(node.proto)
    plain.op = "Transpose"
    return [plain]


def _bincount(node: Node) -> list[node_def_pb2.NodeDef]:
    """XLA counts each row of a matrix separately, as `DenseBincount` does; `Bincount` counts all elements."""
    counted = copy_node(node.proto)
    row = constant(f"{node.name}/row", [-1], types_pb2.DT_INT32, node.proto)
    added = [row]
    for input_index, kind in ((0, types_pb2.DT_INT32), (2, node.proto.attr["T"].type)):
        flat = node_def_pb2.NodeDef(name=f"{node.name}/flat_{input_index}", op="Reshape", device=node.proto.device)
        flat.input.extend([node.proto.input[input_index], f"{row.name}:output:0"])
        flat.attr["T"].type = kind
        flat.attr["Tshape"].type = types_pb2.DT_INT32
        counted.input[input_index] = f"{flat.name}:output:0"
        added.append(flat)
    for new_node in added:
        copy_annotations(node.proto, new_node)
    return [*added, counted]


def _classes(node: Node) -> list[node_def_pb2.NodeDef]:
    """XLA draws from no classes: adds a slice of the first class, which XLA and kernels refuse then."""
    drawn = copy_node(node.proto)
    kind, samples = drawn.attr["T"].type, []

    def add(name: str, op: str, *inputs: str) -> node_def_pb2.NodeDef:
        new_node = node_def_pb2.NodeDef(name=f"{node.name}/{name}", op=op, device=drawn.device, input=inputs)
        return keep(new_node)

    def keep(new_node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
        copy_annotations(node.proto, new_node)
        samples.append(new_node)
        return new_node

    def add_constant(name: str, value: list[int] | int) -> str:
        return f"{keep(constant(f'{node.name}/{name}', value, types_pb2.DT_INT32, drawn)).name}:output:0"

    def part(name: str, begin: int, size: int) -> str:
        bounds = add_constant(f"{name}/begin", [0, begin]), add_constant(f"{name}/size", [-1, size])
        new_node = add(name, "Slice", drawn.input[0], *bounds)
        new_node.attr["T"].type, new_node.attr["Index"].type = kind, types_pb2.DT_INT32
        return f"{new_node.name}:output:0"

    parts = part("first_class", 0, 1), part("classes", 1, -1)
    all_logits = add("logits", "ConcatV2", *parts, add_constant("axis", 1))
    all_logits.attr["T"].type, all_logits.attr["Tidx"].type, all_logits.attr["N"].i = (
        kind,
        types_pb2.DT_INT32,
        len(parts),
    )
    drawn.input[0] = f"{all_logits.name}:output:0"
    return [*samples, drawn]


def _resize_gradient(node: Node) -> op_functions.Replacement | None:
    """XLA returns float32 bytes if the image and its gradient are 16-bit."""
    attributes, kind = node.proto.attr, node.proto.attr["T"].type
    if kind not in (types_pb2.DT_HALF, types_pb2.DT_BFLOAT16):
        return None
    options = {name: attributes[name].b for name in ("align_corners", "half_pixel_centers")}

    def build(gradient: Any, picture: Any) -> list[Any]:
        wide = math_ops.cast(picture, types_pb2.DT_FLOAT)
        return [math_ops.cast(gen_image_ops.resize_bilinear_grad(gradient, wide, **options), kind)]

    inputs = {"grads": types_pb2.DT_FLOAT, "original_image": kind}
    return op_functions.Replacement(inputs, {"output": kind}, build)


def _diagonals(node: Node) -> op_functions.Replacement | None:
    """XLA crashes the process on runtime diagonals outside the matrix."""
    attributes, kind = node.proto.attr, node.proto.attr["T"].type
    position = _DIAGONALS[node.op]
    producer = node.producers[position]
    if producer is not None and producer.op == "Const":
        return None  # TensorFlow has looked at it when it made the op

    def build(*inputs: Any) -> list[Any]:
        low, high = _checked_diagonals(f"{node.op} {node.name}", array_ops.shape(inputs[0]), inputs[position])
        operands = [*inputs[:position], array_ops_stack.stack([low, high]), *inputs[position + 1 :]]
        align = {"align": attributes["align"].s} if "align" in attributes else {}
        return [getattr(gen_array_ops, _WRAPPERS[node.op])(*operands, **align)]

    inputs = {"input": kind, "k": types_pb2.DT_INT32, "padding_value": kind}
    if position == 2:
        inputs = {"input": kind, "diagonal": kind, "k": types_pb2.DT_INT32}
    return op_functions.Replacement(inputs, {"diagonal" if position == 1 else "output": kind}, build)


def _enough_boxes(node: Node) -> op_functions.Replacement:
    """XLA refuses, or crashes on, fewer boxes than may be chosen: pads with boxes that are never chosen.

    It does not compile 16-bit floats together with 32-bit ones, which its own numbers are.
    """
    attributes, kind = node.proto.attr, node.proto.attr["T"].type
    outputs = {"selected_indices": types_pb2.DT_INT32}
    options = {}
    if node.op == "NonMaxSuppressionV4":
        options["pad_to_max_output_size"] = attributes["pad_to_max_output_size"].b
        outputs["valid_outputs"] = types_pb2.DT_INT32

    def build(boxes: Any, scores: Any, box_count: Any, overlap: Any, least: Any) -> list[Any]:
        missing = math_ops.maximum(math_ops.maximum(box_count, 1) - array_ops.shape(boxes)[0], 0)
        boxes, scores, overlap, least = (
            math_ops.cast(operand, types_pb2.DT_FLOAT) for operand in (boxes, scores, overlap, least)
        )
        boxes = array_ops.pad(boxes, [[0, missing], [0, 0]])
        scores = array_ops.pad(scores, [[0, missing]], constant_values=-np.inf)
        selected = getattr(gen_image_ops, _SUPPRESSIONS[node.op])(boxes, scores, box_count, overlap, least, **options)
        if not options:
            return [selected]
        # Places without a box have whatever index where XLA chooses, and 0 where the kernel does.
        chosen = math_ops.range(array_ops.shape(selected[0])[0]) < selected[1]
        return [selected[0] * math_ops.cast(chosen, types_pb2.DT_INT32), selected[1]]

    inputs = {
        "boxes": kind,
        "scores": kind,
        "max_output_size": types_pb2.DT_INT32,
        "iou_threshold": attributes["T_threshold"].type,
        "score_threshold": attributes["T_threshold"].type,
    }
    return op_functions.Replacement(inputs, outputs, build)


def _checked_diagonals(op: str, shape: Any, k: Any) -> tuple[Any, Any]:
    """Returns the lowest and highest diagonal clamped to the matrix; out-of-range ones stop the run."""
    rows, columns, diagonals = shape[-2], shape[-1], array_ops.reshape(k, [-1])
    low = clip_ops.clip_by_value(diagonals[0], 1 - rows, columns - 1)
    high = clip_ops.clip_by_value(diagonals[-1], low, columns - 1)
    are_there = math_ops.logical_and(math_ops.equal(diagonals[0], low), math_ops.equal(diagonals[-1], high))
    message = f"{op}: diagonals that are out of bound for a matrix of (rows, columns)"
    with ops.control_dependencies([assert_op(are_there, [message, rows, columns, "k", diagonals])]):
        return array_ops.identity(low), array_ops.identity(high)


# Which input says which diagonals.
_DIAGONALS = {"MatrixDiagPartV2": 1, "MatrixDiagPartV3": 1, "MatrixSetDiagV2": 2, "MatrixSetDiagV3": 2}
_WRAPPERS = {
    "MatrixDiagPartV2": "matrix_diag_part_v2",
    "MatrixDiagPartV3": "matrix_diag_part_v3",
    "MatrixSetDiagV2": "matrix_set_diag_v2",
    "MatrixSetDiagV3": "matrix_set_diag_v3",
}
_SUPPRESSIONS = {
    "NonMaxSuppressionV3": "non_max_suppression_v3",
    "NonMaxSuppressionV4": "non_max_suppression_v4",
}
_RULES = {
    "ConjugateTranspose": _transpose,
    "Bincount": _bincount,
    "Multinomial": _classes,
    "StatelessMultinomial": _classes,
}
