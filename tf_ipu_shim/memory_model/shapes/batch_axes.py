"""Propagates the mini-batch axis from operands of HLO instructions to their results.

Matmuls and sums over that axis, such as gradients of weights, remove it. The result of an unknown instruction has the
axis if its size there equals the operand's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Axis(NamedTuple):
    """The mini-batch axis of a tensor.

    Args:
        inner: elements of that axis for each sample, for example if a reshape has joined it with another axis.
    """

    dimension: int
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
    """Returns the mini-batch axis of an elementwise result: the same as in the operands."""
    for shape, axis in zip(shapes, axes):
        if axis is not None and len(shape.dimensions) == len(instruction.dimensions):
            if shape.dimensions[axis.dimension] == instruction.dimensions[axis.dimension]:
                return axis
    return None


def _joined(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    return next(filter(None, axes))


def _broadcast(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = axes[0]
    return axis and axis._replace(dimension=instruction.dimensions[axis.dimension])


def _transposed(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = axes[0]
    return axis and axis._replace(dimension=list(instruction.dimensions).index(axis.dimension))


def _reshaped(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    return reshaped_axis(shapes[0], instruction.shape, axes[0])


def reshaped_axis(shape: Any, other: Any, axis: Found) -> Found:
    """Returns the mini-batch axis after a reshape."""
    if axis is None:
        return None
    stride = axis.inner * math.prod(shape.dimensions[axis.dimension + 1 :])
    below = 1
    for dim in range(len(other.dimensions) - 1, -1, -1):
        elements = below * other.dimensions[dim]
        if below <= stride < elements:
            return Axis(dim, max(1, stride // below))
        below = elements
    return None


def _product(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    dnums = instruction.dot_dimension_numbers
    lhs_axes = list(dnums.lhs_batch_dimensions), list(dnums.lhs_contracting_dimensions)
    right = list(dnums.rhs_batch_dimensions), list(dnums.rhs_contracting_dimensions)
    before = len(lhs_axes[0])
    for shape, axis, (batch, contracting) in zip(shapes, axes, (lhs_axes, right)):
        free = [dim for dim in range(len(shape.dimensions)) if dim not in batch and dim not in contracting]
        if axis is not None and axis.dimension in batch:
            return axis._replace(dimension=batch.index(axis.dimension))
        if axis is not None and axis.dimension in free:
            return axis._replace(dimension=before + free.index(axis.dimension))
        before += len(free)
    return None


def _convolution(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    dnums = instruction.convolution_dimension_numbers
    if axes[0] is not None and axes[0].dimension == dnums.input_batch_dimension:
        return axes[0]._replace(dimension=dnums.output_batch_dimension)
    if axes[1] is not None and axes[1].dimension == dnums.kernel_output_feature_dimension:
        return axes[1]._replace(dimension=dnums.output_feature_dimension)
    return None


def _reduced(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    axis = next(filter(None, axes))
    if axis.dimension in instruction.dimensions:
        return None
    return axis._replace(
        dimension=axis.dimension - sum(dimension < axis.dimension for dimension in instruction.dimensions)
    )


def _gathered(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found]) -> Found:
    dnums, rank = instruction.gather_dimension_numbers, len(instruction.shape.dimensions)
    table, places = axes[0], axes[1]
    if places is not None:
        of_places = [dim for dim in range(len(shapes[1].dimensions)) if dim != dnums.index_vector_dim]
        of_result = [dim for dim in range(rank) if dim not in dnums.offset_dims]
        if places.dimension in of_places:
            return places._replace(dimension=of_result[of_places.index(places.dimension)])
    if table is not None:
        remaining = [dim for dim in range(len(shapes[0].dimensions)) if dim not in dnums.collapsed_slice_dims]
        is_whole_row = instruction.gather_slice_sizes[table.dimension] == shapes[0].dimensions[table.dimension]
        if is_whole_row and table.dimension in remaining:
            return table._replace(dimension=dnums.offset_dims[remaining.index(table.dimension)])
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
