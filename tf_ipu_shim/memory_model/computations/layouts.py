"""Tells in which order tensors lie on their tiles: along which axis neighbours lie, and whether a matmul wants that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from typing import Any

from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE

PATH_LIMIT = 32
"""Instructions to look at between a tensor and the matmul whose layout it keeps."""
_NORMS = frozenset({"batch-norm-grad", "batch-norm-inference", "batch-norm-training"})
_RESHAPES = frozenset({"bitcast", "reshape"})
_SAME_AXES = frozenset({"concatenate", "copy", "pad", "reduce-window", "reverse", "select-and-scatter", "slice"})
"""Opcodes whose results keep the axes of their first operand; pooling: popnn/Pooling.cpp, lines 473 to 476."""
_KEEP_TILES = frozenset({"bitcast", "copy", "reshape", "transpose"})
_ALLOCATED = frozenset({"constant", "custom-call", "get-tuple-element", "parameter"})
"""Opcodes of variables and arguments, which Poplar allocates for their consumer."""


def mapped_like(instruction: Any, by_id: Mapping[int, Any]) -> Any:
    """Returns the operand whose tile mapping an instruction's result keeps, or None."""
    if instruction.opcode in _NORMS or instruction.opcode == "get-tuple-element":
        return _normalised(instruction, by_id)
    if instruction.opcode not in ELEMENTWISE and instruction.opcode not in _KEEP_TILES:
        return None
    operands = [by_id[operand_id] for operand_id in instruction.operand_ids]
    size = elements_of(instruction.shape)
    return next(
        (operand for operand in operands if operand.opcode != "broadcast" and elements_of(operand.shape) == size), None
    )


def _normalised(instruction: Any, by_id: Mapping[int, Any]) -> Any:
    """Returns what a norm normalises, if an instruction is its first result."""
    if instruction.opcode == "get-tuple-element":
        norm = by_id[instruction.operand_ids[0]]
        return by_id[norm.operand_ids[0]] if norm.opcode in _NORMS and not instruction.tuple_index else None
    return by_id[instruction.operand_ids[0]] if instruction.opcode == "batch-norm-inference" else None


def arranged_operands(
    product: Any, by_id: Mapping[int, Any], rearranged: Collection[int] = frozenset()
) -> tuple[bool, bool]:
    """Returns for each operand of a matmul or convolution whether it lies in the order that the units want.

    Args:
        rearranged: parameters that lie in another order, by their instructions.
    """
    if product.opcode not in ("convolution", "dot"):
        return False, False
    first, second = (by_id[operand_id] for operand_id in product.operand_ids[:2])
    if product.opcode == "convolution":
        axis = product.convolution_dimension_numbers.input_feature_dimension
        return is_arranged(first, axis, by_id, rearranged), False
    dnums = product.dot_dimension_numbers
    left, right = max(dnums.lhs_contracting_dimensions), max(dnums.rhs_contracting_dimensions)
    return is_arranged(first, left, by_id, rearranged), is_arranged(second, right, by_id, rearranged)


def is_arranged(
    instruction: Any, axis: int, by_id: Mapping[int, Any], rearranged: Collection[int] = frozenset()
) -> bool:
    """Returns whether neighbours along an axis of a tensor are neighbours on its tiles, as the units want them.

    The axis is followed to where the tensor is made. The columns of a matmul and the channels of a convolution are
    neighbours; views do not move elements. What Poplar allocates for a matmul has the order of its last axes.
    """
    for _ in range(PATH_LIMIT):
        if instruction.opcode == "dot":
            return axis == len(instruction.shape.dimensions) - 1
        if instruction.opcode == "convolution":
            return bool(axis == instruction.convolution_dimension_numbers.output_feature_dimension)
        before = _source(instruction, axis, by_id)
        if before is None:
            is_allocated = instruction.opcode in _ALLOCATED and instruction.id not in rearranged
            return is_allocated and (axis > 0 or len(instruction.shape.dimensions) == 1)
        instruction, axis = before
    return False


def _source(instruction: Any, axis: int, by_id: Mapping[int, Any]) -> tuple[Any, int] | None:
    """Returns the tensor that an axis comes from, and its number there; None where neighbours may be others."""
    opcode = instruction.opcode
    if opcode == "transpose":
        return by_id[instruction.operand_ids[0]], instruction.dimensions[axis]
    if opcode in _SAME_AXES:
        before = by_id[instruction.operand_ids[0]]
        same = instruction.shape.dimensions[axis] == before.shape.dimensions[axis]
        return (before, axis) if same else None
    found = mapped_like(instruction, by_id)
    if found is None:
        return None
    if opcode not in _RESHAPES:
        return found, axis
    moved = _axis_before_reshape(found.shape.dimensions, instruction.shape.dimensions, axis)
    return None if moved is None else (found, moved)


def _axis_before_reshape(before: Collection[int], after: Collection[int], axis: int) -> int | None:
    """Returns the axis whose elements are as far apart as those of an axis of the reshaped tensor.

    Example:
        >>> _axis_before_reshape([32, 4, 16], [32, 64], 1)
        2
        >>> _axis_before_reshape([32, 64], [1, 32, 64, 1], 2)
        1
    """
    wanted = _strides(after)[axis]
    candidates = zip(itertools.count(), before, _strides(before))
    return next((at for at, extent, stride in candidates if stride == wanted and extent > 1), None)


def _strides(extents: Collection[int]) -> list[int]:
    """Returns the distance of neighbours of each axis in row-major order."""
    sizes = list(extents)
    return [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]
