"""Finds the order of tensors on their tiles: the axis of neighbouring elements, and whether a matmul needs it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tf_ipu_shim.cycle_model.planning import REARRANGED, OperandLayout, OperandLayouts
from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, is_gradient

PATH_LIMIT = 32
"""Instructions to look at between a tensor and the matmul whose layout it keeps."""
NORMS = frozenset({"batch-norm-grad", "batch-norm-inference", "batch-norm-training"})
_RESHAPES = frozenset({"bitcast", "reshape"})
_SAME_AXES = frozenset(
    "concatenate copy dynamic-slice dynamic-update-slice pad reduce-window reverse select-and-scatter slice".split()
)
"""Opcodes whose results lie as their first operand does.

Source: popnn/Pooling.cpp, lines 473 to 476; popops/DynamicSlice.cpp, line 1511.
"""
_KEEP_TILES = frozenset({"bitcast", "copy", "reshape", "transpose"})
_ALLOCATED = frozenset({"constant", "parameter"})
PRODUCTS = frozenset({"convolution", "dot"})
_MADE = _ALLOCATED | PRODUCTS | {"custom-call", "get-tuple-element"}
NO_AXIS = -1
"""Stands for any axis: elements that are adjacent on the tiles may be adjacent in any order."""
GROUP = 16
"""The most neighbours that the units process at a time: see docs/reference/facts.md, section "Planning formulas"."""


def mapped_like(instruction: Any, by_id: Mapping[int, Any]) -> Any:
    """Returns the operand whose tile mapping an instruction's result keeps, or None."""
    if instruction.opcode in NORMS or instruction.opcode == "get-tuple-element":
        return _normalised(instruction, by_id)
    if instruction.opcode not in ELEMENTWISE and instruction.opcode not in _KEEP_TILES:
        return None
    operands = [by_id[operand_id] for operand_id in instruction.operand_ids]
    size = elements_of(instruction.shape)
    return next(
        (operand for operand in operands if operand.opcode != "broadcast" and elements_of(operand.shape) == size), None
    )


def _normalised(instruction: Any, by_id: Mapping[int, Any]) -> Any:
    """Returns the input of a norm, if an instruction is its first result."""
    if instruction.opcode == "get-tuple-element":
        norm = by_id[instruction.operand_ids[0]]
        return by_id[norm.operand_ids[0]] if norm.opcode in NORMS and not instruction.tuple_index else None
    return by_id[instruction.operand_ids[0]] if instruction.opcode == "batch-norm-inference" else None


class Layouts(NamedTuple):
    """The layouts of the tensors of an HLO computation.

    Args:
        given: arguments that something else made, by their instructions: the axis whose neighbours are neighbours on
            the tiles, `NO_AXIS` for none.
        allocated: variables and arguments that Poplar allocates for the first matmul that uses them, by their keys: the
            axis over which it sums. It grows in the order of the program.
        keys: the keys of arguments, by their instructions.
        computation: distinguishes its constants from others'.
    """

    by_id: Mapping[int, Any]
    given: Mapping[int, int]
    allocated: dict[Hashable, int]
    keys: Mapping[int, Hashable] = MappingProxyType({})
    computation: object = None


def allocate(layouts: Layouts) -> None:
    """Allocates the operands of a computation's matmuls, the forward pass first."""
    products = [instruction for instruction in layouts.by_id.values() if instruction.opcode in PRODUCTS]
    for product in sorted(products, key=lambda product: is_gradient(product.metadata.op_name)):
        operand_layouts(product, layouts)


def operand_layouts(product: Any, layouts: Layouts) -> OperandLayouts:
    """Returns the layouts of a matmul's or convolution's operands on the tiles."""
    if product.opcode == "convolution":
        numbers = product.convolution_dimension_numbers
        axes = numbers.input_feature_dimension, numbers.kernel_input_feature_dimension
    elif product.opcode == "dot":
        numbers = product.dot_dimension_numbers
        axes = max(numbers.lhs_contracting_dimensions), max(numbers.rhs_contracting_dimensions)
    else:
        return REARRANGED
    first, second = (layouts.by_id[operand_id] for operand_id in product.operand_ids[:2])
    return layout_of(first, axes[0], layouts), layout_of(second, axes[1], layouts)


def layout_of(instruction: Any, axis: int, layouts: Layouts) -> OperandLayout:
    """Returns how a tensor lies on the tiles for a matmul that sums over an axis, whose neighbours should be together.

    The axis is followed to the op that makes the tensor; views do not move elements.
    """
    origin = _origin(instruction, axis, layouts.by_id)
    if origin is None:
        return OperandLayout.OTHER
    made, axis = origin
    if not _is_allocated(made, layouts):
        return OperandLayout.ARRANGED if axis == _neighbours(made, layouts) else OperandLayout.OTHER
    key = layouts.keys.get(made.id, (layouts.computation, made.id))
    return OperandLayout.ALLOCATED if layouts.allocated.setdefault(key, axis) == axis else OperandLayout.OTHER


def neighbours_of(instruction: Any, layouts: Layouts) -> int | None:
    """Returns the axis whose neighbours are neighbours on the tiles; None for tensors that Poplar allocates for a
    matmul.
    """
    extents = list(instruction.shape.dimensions)
    for axis in (at for at in reversed(range(len(extents))) if extents[at] > 1):
        origin = _origin(instruction, axis, layouts.by_id)
        if origin is None:
            continue
        if _is_allocated(origin[0], layouts):
            return None
        if origin[1] == _neighbours(origin[0], layouts):
            return axis
    return NO_AXIS


def _is_allocated(made: Any, layouts: Layouts) -> bool:
    """Returns whether Poplar allocates a tensor for a matmul: variables, arguments and constants."""
    return made.id not in layouts.given and (made.id in layouts.keys or made.opcode in _ALLOCATED)


def _neighbours(made: Any, layouts: Layouts) -> int:
    """Returns the axis whose neighbours are adjacent in a tensor as made: a matmul's columns, channels."""
    if made.opcode == "convolution":
        return int(made.convolution_dimension_numbers.output_feature_dimension)
    return layouts.given.get(made.id, len(made.shape.dimensions) - 1)


def _origin(instruction: Any, axis: int, by_id: Mapping[int, Any]) -> tuple[Any, int] | None:
    """Returns the op that makes a tensor, and its axis there; None if neighbours may differ."""
    for _ in range(PATH_LIMIT):
        before = _source(instruction, axis, by_id)
        if before is None:
            return (instruction, axis) if instruction.opcode in _MADE else None
        instruction, axis = before
    return None


def _source(instruction: Any, axis: int, by_id: Mapping[int, Any]) -> tuple[Any, int] | None:
    """Returns the source tensor of an axis, and its number there; None if neighbours may differ."""
    opcode = instruction.opcode
    if opcode in PRODUCTS:
        return None
    if opcode == "transpose":
        return by_id[instruction.operand_ids[0]], instruction.dimensions[axis]
    if opcode in _SAME_AXES:
        before = by_id[instruction.operand_ids[0]]
        same = instruction.shape.dimensions[axis] == before.shape.dimensions[axis]
        return (before, axis) if same or _has_whole_groups(instruction, axis) else None
    found = mapped_like(instruction, by_id)
    if found is None:
        return None
    if opcode not in _RESHAPES:
        return found, axis
    moved = _axis_before_reshape(found.shape.dimensions, instruction.shape.dimensions, axis)
    return None if moved is None else (found, moved)


def _has_whole_groups(instruction: Any, axis: int) -> bool:
    """Returns whether a slice consists of whole groups of neighbours along an axis."""
    if instruction.opcode != "slice":
        return False
    part = instruction.slice_dimensions[axis]
    return bool(part.stride <= 1 and not part.start % GROUP and not part.limit % GROUP)


def _axis_before_reshape(before: Sequence[int], after: Sequence[int], axis: int) -> int | None:
    """Returns the axis with the same distance between elements as an axis of the reshaped tensor.

    Example:
        >>> _axis_before_reshape([32, 4, 16], [32, 64], 1)
        2
        >>> _axis_before_reshape([32, 64], [1, 32, 64, 1], 2)
        1
    """
    wanted = _strides(after)[axis]
    candidates = enumerate(zip(before, _strides(before)))
    return next((at for at, (extent, stride) in candidates if stride == wanted and extent > 1), None)


def _strides(extents: Sequence[int]) -> list[int]:
    """Returns the distance of neighbours of each axis in row-major order."""
    return [math.prod(extents[at + 1 :]) for at in range(len(extents))]
