"""Classifies the work of an HLO instruction, with its sizes for the cycle model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tf_ipu_shim.cycle_model.sizes import (
    CastSizes,
    ElementCount,
    FactorSizes,
    GatherSizes,
    NormSizes,
    RandomSizes,
    ReduceSizes,
    Sizes,
    SolveSizes,
    SortSizes,
    UpdateSizes,
    WindowSizes,
)
from tf_ipu_shim.memory_model.computations.operations import elementwise_sizes
from tf_ipu_shim.memory_model.computations.work import convolution_sizes, dot_sizes, elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, VIEWS, dtype_of, shape_bytes

FREE = frozenset({"constant", "parameter", "tuple", "get-tuple-element", "after-all"})
RANDOM = frozenset({"rng", "rng-bit-generator"})
_NORM_KINDS = {
    "batch-norm-inference": "inference", "batch-norm-training": "training", "batch-norm-grad": "gradient"
}  # fmt: skip


def kind_and_sizes(instruction: Any, operands: Sequence[Any], by_id: Mapping[int, Any]) -> tuple[str, Sizes]:
    """Returns an instruction's kind of work, empty for none, and its sizes."""
    opcode, size = instruction.opcode, elements_of(instruction.shape)
    if opcode in VIEWS or opcode in FREE:
        return "", ElementCount(0)
    if opcode == "dot":
        return "product", dot_sizes(instruction, operands)
    if opcode == "convolution":
        return "product", convolution_sizes(instruction, operands)
    if opcode == "convert":
        return "cast", CastSizes(size, dtype_of(operands[0].shape), dtype_of(instruction.shape))
    if opcode in ELEMENTWISE:
        return "elementwise", elementwise_sizes(instruction, operands, by_id)
    if opcode == "sort":
        return "sort", _sort_sizes(instruction, operands, by_id)
    if opcode == "triangular-solve":
        side = operands[0].shape.dimensions[-1]
        matrices = elements_of(operands[0].shape) // max(1, side * side)
        return "solve", SolveSizes(matrices, side, size // max(1, matrices * side))
    if opcode == "cholesky":
        side = instruction.shape.dimensions[-1]
        return "factor", FactorSizes(size // max(1, side * side), side)
    return _data_movement(instruction, operands)


def _data_movement(instruction: Any, operands: Sequence[Any]) -> tuple[str, Sizes]:
    """Returns kind and sizes of reductions, gathers, norms and copies."""
    opcode, size = instruction.opcode, elements_of(instruction.shape)
    if opcode == "reduce":
        return "reduce", _reduce_sizes(instruction, operands[0].shape)
    if opcode in ("reduce-window", "select-and-scatter"):
        return "window", _window_sizes(instruction)
    if opcode in ("gather", "dynamic-slice"):
        is_slice = opcode == "dynamic-slice"
        row = 0 if is_slice else math.prod(instruction.gather_slice_sizes)
        return "gather", GatherSizes(size, elements_of(operands[0].shape), row, is_slice)
    if opcode in ("scatter", "dynamic-update-slice"):
        return "update", _update_sizes(instruction, operands)
    if opcode in _NORM_KINDS:
        extents, axis = list(operands[0].shape.dimensions), instruction.feature_index
        run = math.prod(extents[axis + 1 :])
        return "norm", NormSizes(math.prod(extents), extents[axis], _NORM_KINDS[opcode], run)
    if opcode == "copy":
        return "copy", ElementCount(size)
    if opcode in RANDOM:
        return "random", RandomSizes(size)
    return "other", ElementCount(size)


def _sort_sizes(instruction: Any, operands: Sequence[Any], by_id: Mapping[int, Any]) -> SortSizes:
    shape = operands[0].shape
    axis = instruction.dimensions[0] if shape.dimensions else 0
    length = shape.dimensions[axis] if shape.dimensions else 1
    sizes = SortSizes(elements_of(shape), length, dtype_of(shape), len(operands) > 1)
    if instruction.metadata.op_type not in ("TopK", "TopKV2"):
        return sizes
    # The largest elements of a row are those that a slice of the sorted ones has.
    results = {each.id for each in by_id.values() if instruction.id in each.operand_ids}
    slices = [each for each in by_id.values() if each.opcode == "slice" and results.intersection(each.operand_ids)]
    return sizes._replace(kept=max((each.shape.dimensions[axis] for each in slices), default=0))


def _reduce_sizes(instruction: Any, shape: Any) -> ReduceSizes:
    lengths = tuple(alternating_axes(shape.dimensions, instruction.dimensions))
    dtype, op = dtype_of(shape), instruction.metadata.op_type
    adds = op not in ("All", "Any", "ArgMax", "ArgMin", "Max", "Min", "Prod", "Softmax", "LogSoftmax")
    return ReduceSizes(elements_of(shape), max(1, elements_of(instruction.shape)), lengths, dtype, adds)


def _window_sizes(instruction: Any) -> WindowSizes:
    op, extents = instruction.metadata.op_type, list(instruction.shape.dimensions)
    kind = "sum" if op.startswith("Avg") else "max_grad" if instruction.opcode == "select-and-scatter" else "max"
    window = math.prod(dimension.size for dimension in instruction.window.dimensions)
    return WindowSizes(elements_of(instruction.shape), window, kind, extents[-1] if extents else 1)


def _update_sizes(instruction: Any, operands: Sequence[Any]) -> UpdateSizes:
    table = elements_of(operands[0].shape)
    if instruction.opcode == "dynamic-update-slice":
        return UpdateSizes(elements_of(operands[1].shape), table, is_slice=True)
    updates = operands[-1].shape
    row = math.prod(updates.dimensions[axis] for axis in instruction.scatter_dimension_numbers.update_window_dims)
    return UpdateSizes(elements_of(updates), table, row, adds=instruction.metadata.op_type != "ScatterUpdate")


def alternating_axes(shape: Sequence[int], summed: Collection[int]) -> list[int]:
    """Returns the lengths of reduced and kept axes, innermost first, with neighbours merged.

    Example:
        >>> alternating_axes([20, 7, 7, 64], [0, 1, 2])
        [1, 64, 980]
    """
    lengths = [1]
    for axis in reversed(range(len(shape))):
        if (axis in summed) != (len(lengths) % 2 == 1):
            lengths.append(1)
        lengths[-1] *= shape[axis]
    return lengths


def element_bytes(shape: Any) -> int:
    """Returns the bytes of an element; of a tuple's largest."""
    if shape.tuple_shapes:
        return max((element_bytes(part) for part in shape.tuple_shapes), default=4)
    return max(1, shape_bytes(shape) // max(1, elements_of(shape)))
