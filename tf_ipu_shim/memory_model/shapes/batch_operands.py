"""Propagates the mini-batch axis from results of HLO instructions to operands, and through whole blocks.

A gradient begins with one number that is broadcast over the mini-batch, and so is a bias: their inputs do not have that
axis. The other operands have it, element by element, so they have it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.machine.memory import Block, Mode
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis, reshaped_axis, result_axis

Found = Axis | None
_SAME_AXES = ELEMENTWISE | {"copy", "pad", "reverse", "slice", "concatenate", "reduce-window"}


def operand_axes(
    instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], found_instruction: Found
) -> list[Found]:
    """Returns the mini-batch axis of each operand, as far as result and other operands determine it."""
    opcode = instruction.opcode
    if opcode == "dot":
        return [
            axis or _of_matmul_operand(instruction, shapes, axes, found_instruction, place)
            for place, axis in enumerate(axes)
        ]
    if found_instruction is None:
        return list(axes)
    if opcode in _SAME_AXES:
        return [axis or _same_place(instruction.shape, shape, found_instruction) for axis, shape in zip(axes, shapes)]
    rule = _RULES.get(opcode)
    return [axes[0] or rule(instruction, shapes[0], found_instruction), *axes[1:]] if rule is not None else list(axes)


def _same_place(instruction: Any, shape: Any, axis: Axis) -> Found:
    if len(shape.dimensions) == len(instruction.dimensions):
        return axis if shape.dimensions[axis.dimension] == instruction.dimensions[axis.dimension] else None
    return None


def _broadcast(instruction: Any, shape: Any, axis: Axis) -> Found:
    at = list(instruction.dimensions)
    return axis._replace(dimension=at.index(axis.dimension)) if axis.dimension in at else None


def _transposed(instruction: Any, shape: Any, axis: Axis) -> Found:
    return axis._replace(dimension=instruction.dimensions[axis.dimension])


def _reshaped(instruction: Any, shape: Any, axis: Axis) -> Found:
    return reshaped_axis(instruction.shape, shape, axis)


def _reduced(instruction: Any, shape: Any, axis: Axis) -> Found:
    retained = [dim for dim in range(len(shape.dimensions)) if dim not in instruction.dimensions]
    return axis._replace(dimension=retained[axis.dimension])


def _of_matmul_operand(
    instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], found_instruction: Found, place: int
) -> Found:
    """Returns the mini-batch axis of a matmul operand: as in the result, or summed with the other's."""
    dnums = instruction.dot_dimension_numbers
    sides = [
        (list(dnums.lhs_batch_dimensions), list(dnums.lhs_contracting_dimensions)),
        (list(dnums.rhs_batch_dimensions), list(dnums.rhs_contracting_dimensions)),
    ]
    (batch, summed), other = sides[place], axes[1 - place]
    for own_axes, other_axes in zip((batch, summed), sides[1 - place]):
        if other is not None and other.dimension in other_axes:
            return other._replace(dimension=own_axes[other_axes.index(other.dimension)])
    if found_instruction is None:
        return None
    free = [[n for n in range(len(shape.dimensions)) if n not in b + s] for shape, (b, s) in zip(shapes, sides)]
    before = len(batch) + (len(free[0]) if place else 0)
    if found_instruction.dimension < len(batch):
        return found_instruction._replace(dimension=batch[found_instruction.dimension])
    at = found_instruction.dimension - before
    return found_instruction._replace(dimension=free[place][at]) if 0 <= at < len(free[place]) else None


_RULES: dict[str, Callable[[Any, Any, Axis], Found]] = {
    "bitcast": _reshaped,
    "broadcast": _broadcast,
    "reduce": _reduced,
    "reshape": _reshaped,
    "transpose": _transposed,
}


class _Instruction(NamedTuple):
    """An instruction with its input and output values."""

    instruction: Any
    inputs: Sequence[int]
    shapes: Sequence[Any]
    result: int


class MiniBatch:
    """Propagates the mini-batch axis through the values of a block, in both directions.

    Args:
        parts: the number of parts into which tensors with a mini-batch axis are divided; one of them counts.

    Attributes:
        axes: the mini-batch axes of values, by number, as far as known; callers that add values add theirs.
    """

    def __init__(self, block: Block, parts: int) -> None:
        self._block, self._parts = block, parts
        self.axes: dict[int, Axis] = {}
        self._touching: dict[int, list[_Instruction]] = {}

    def record(self, instruction: Any, operands: Sequence[int], shapes: Sequence[Any], value_id: int) -> None:
        """Records an instruction and its implications for other values."""
        if len(operands) != len(shapes):
            return
        recorded = _Instruction(instruction, operands, shapes, value_id)
        for touched in {*operands, value_id}:
            self._touching.setdefault(touched, []).append(recorded)
        self._settle([recorded])

    def _settle(self, touched: Iterable[_Instruction]) -> None:
        pending = list(touched)
        while pending:
            for value_id, axis in list(self._implied_axes(pending.pop())):
                if value_id not in self.axes and axis.dimension >= 0 and not self._is_variable(value_id):
                    self._record_axis(value_id, axis)
                    pending += self._touching.get(value_id, ())

    def _implied_axes(self, instruction: _Instruction) -> Iterator[tuple[int, Axis]]:
        axes = [self.axes.get(value_id) for value_id in instruction.inputs]
        result = self.axes.get(instruction.result) or result_axis(instruction.instruction, instruction.shapes, axes)
        inferred = operand_axes(instruction.instruction, instruction.shapes, axes, result)
        yield from (
            (value_id, axis)
            for value_id, axis in zip((*instruction.inputs, instruction.result), (*inferred, result))
            if axis
        )

    def _is_variable(self, value_id: int) -> bool:
        """Returns whether a value is a variable: the script makes it as large as it is."""
        value = self._block.values[value_id]
        return value.mode is Mode.ALWAYS and value.kind != "constant"

    def _record_axis(self, value_id: int, axis: Axis) -> None:
        value = self._block.values[value_id]
        self.axes[value_id] = axis
        self._block.values[value_id] = value._replace(bytes=-(-value.bytes // self._parts))
