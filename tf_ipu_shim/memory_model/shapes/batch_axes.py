"""Propagates the mini-batch axis from operands of HLO instructions to their results.

Products and sums over that axis, such as gradients of weights, have it no more. If an instruction is not known, its
result has the axis if it is as long there as the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Axis(NamedTuple):
    """The mini-batch axis of a tensor.

    Args:
        inner: elements of that axis to each sample, as of rows and places that a reshape has put together.
    """

    number: int
    inner: int = 1


Found = Axis | None
_Rule = Callable[[Any, Sequence[Any], Sequence[Found]], Found]


def result_axis(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    """Returns the mini-batch axis of an instruction's result."""
    if not any(axes):
        return None
    rule = _RULES.get(instruction.opcode)
    return elementwise_axis(instruction.shape, shapes, axes) if rule is None else rule(instruction, shapes, axes)


def elementwise_axis(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    """Returns the mini-batch axis of an elementwise result: where it is in the operands."""
    for shape, axis in zip(shapes, axes):
        if axis is not None and len(shape.dimensions) == len(instruction.dimensions):
            if shape.dimensions[axis.number] == instruction.dimensions[axis.number]:
                return axis
    return None


def _joined(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    return next(filter(None, axes))


def _broadcast(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = axes[0]
    return axis and axis._replace(number=instruction.dimensions[axis.number])


def _transposed(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = axes[0]
    return axis and axis._replace(number=list(instruction.dimensions).index(axis.number))


def _reshaped(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    return reshaped_axis(shapes[0], instruction.shape, axes[0])


def reshaped_axis(shape: Any, other: Any, axis: Found) -> Found:
    """Returns the mini-batch axis after a reshape."""
    if axis is None:
        return None
    stride = axis.inner * math.prod(shape.dimensions[axis.number + 1 :])
    below = 1
    for number in range(len(other.dimensions) - 1, -1, -1):
        elements = below * other.dimensions[number]
        if below <= stride < elements:
            return Axis(number, max(1, stride // below))
        below = elements
    return None


def _product(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    numbers = instruction.dot_dimension_numbers
    lhs_axes = list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)
    right = list(numbers.rhs_batch_dimensions), list(numbers.rhs_contracting_dimensions)
    before = len(lhs_axes[0])
    for shape, axis, (batch, contracting) in zip(shapes, axes, (lhs_axes, right)):
        free = [one for one in range(len(shape.dimensions)) if one not in batch and one not in contracting]
        if axis is not None and axis.number in batch:
            return axis._replace(number=batch.index(axis.number))
        if axis is not None and axis.number in free:
            return axis._replace(number=before + free.index(axis.number))
        before += len(free)
    return None


def _convolution(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    numbers = instruction.convolution_dimension_numbers
    if axes[0] is not None and axes[0].number == numbers.input_batch_dimension:
        return axes[0]._replace(number=numbers.output_batch_dimension)
    if axes[1] is not None and axes[1].number == numbers.kernel_output_feature_dimension:
        return axes[1]._replace(number=numbers.output_feature_dimension)
    return None


def _reduced(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = next(filter(None, axes))
    if axis.number in instruction.dimensions:
        return None
    return axis._replace(number=axis.number - sum(dimension < axis.number for dimension in instruction.dimensions))


def _gathered(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    numbers, rank = instruction.gather_dimension_numbers, len(instruction.shape.dimensions)
    table, places = axes[0], axes[1]
    if places is not None:
        of_places = [one for one in range(len(shapes[1].dimensions)) if one != numbers.index_vector_dim]
        of_result = [one for one in range(rank) if one not in numbers.offset_dims]
        if places.number in of_places:
            return places._replace(number=of_result[of_places.index(places.number)])
    if table is not None:
        remaining = [one for one in range(len(shapes[0].dimensions)) if one not in numbers.collapsed_slice_dims]
        is_whole_row = instruction.gather_slice_sizes[table.number] == shapes[0].dimensions[table.number]
        if is_whole_row and table.number in remaining:
            return table._replace(number=numbers.offset_dims[remaining.index(table.number)])
    return None


def _scattered(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    return axes[0]


_RULES: dict[str, _Rule] = {
    "bitcast": _reshaped,
    "broadcast": _broadcast,
    "concatenate": _joined,
    "convolution": _convolution,
    "dot": _product,
    "gather": _gathered,
    "reduce": _reduced,
    "reshape": _reshaped,
    "scatter": _scattered,
    "transpose": _transposed,
}
