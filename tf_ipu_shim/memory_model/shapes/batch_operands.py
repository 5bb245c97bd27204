"""Propagates the mini-batch axis backwards, from results of HLO instructions to operands.

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
_ALIKE = ELEMENTWISE | {"copy", "pad", "reverse", "slice", "concatenate", "reduce-window"}


def operand_axes(
    instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], found_instruction: Found
) -> list[Found]:
    """Returns the mini-batch axis of each operand, as far as result and other operands determine it."""
    opcode = instruction.opcode
    if opcode == "dot":
        return [
            one or _of_matmul_operand(instruction, shapes, axes, found_instruction, place)
            for place, one in enumerate(axes)
        ]
    if found_instruction is None:
        return list(axes)
    if opcode in _ALIKE:
        return [one or _same_place(instruction.shape, shape, found_instruction) for one, shape in zip(axes, shapes)]
    rule = _RULES.get(opcode)
    return [axes[0] or rule(instruction, shapes[0], found_instruction), *axes[1:]] if rule is not None else list(axes)


def _same_place(instruction: Any, shape: Any, axis: Axis) -> Found:
    if len(shape.dimensions) == len(instruction.dimensions):
        return axis if shape.dimensions[axis.number] == instruction.dimensions[axis.number] else None
    return None


def _broadcast(instruction: Any, shape: Any, axis: Axis) -> Found:
    at = list(instruction.dimensions)
    return axis._replace(number=at.index(axis.number)) if axis.number in at else None


def _transposed(instruction: Any, shape: Any, axis: Axis) -> Found:
    return axis._replace(number=instruction.dimensions[axis.number])


def _reshaped(instruction: Any, shape: Any, axis: Axis) -> Found:
    return reshaped_axis(instruction.shape, shape, axis)


def _reduced(instruction: Any, shape: Any, axis: Axis) -> Found:
    retained = [number for number in range(len(shape.dimensions)) if number not in instruction.dimensions]
    return axis._replace(number=retained[axis.number])


def _of_matmul_operand(
    instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], found_instruction: Found, place: int
) -> Found:
    """Returns the mini-batch axis of a matmul operand: as in the result, or summed with the other's."""
    numbers = instruction.dot_dimension_numbers
    sides = [
        (list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)),
        (list(numbers.rhs_batch_dimensions), list(numbers.rhs_contracting_dimensions)),
    ]
    (batch, summed), other = sides[place], axes[1 - place]
    for own_axes, other_axes in zip((batch, summed), sides[1 - place]):
        if other is not None and other.number in other_axes:
            return other._replace(number=own_axes[other_axes.index(other.number)])
    if found_instruction is None:
        return None
    free = [[n for n in range(len(shape.dimensions)) if n not in b + s] for shape, (b, s) in zip(shapes, sides)]
    before = len(batch) + (len(free[0]) if place else 0)
    if found_instruction.number < len(batch):
        return found_instruction._replace(number=batch[found_instruction.number])
    at = found_instruction.number - before
    return found_instruction._replace(number=free[place][at]) if 0 <= at < len(free[place]) else None


_RULES: dict[str, Callable[[Any, Any, Axis], Found]] = {
    "bitcast": _reshaped,
    "broadcast": _broadcast,
    "reduce": _reduced,
    "reshape": _reshaped,
    "transpose": _transposed,
}


class _Instruction(NamedTuple):
    """An instruction with the values that it takes and makes."""

    instruction: Any
    inputs: Sequence[int]
    shapes: Sequence[Any]
    number: int


class MiniBatch:
    """Propagates the mini-batch axis through the values of a block, in both directions.

    Args:
        parts: of so many parts of what has the mini-batch as an axis one counts.

    Attributes:
        axes: where the mini-batch is in values, by number, as far as is known; anyone who gives values adds theirs.
    """

    def __init__(self, block: Block, parts: int) -> None:
        self._block, self._parts = block, parts
        self.axes: dict[int, Axis] = {}
        self._touching: dict[int, list[_Instruction]] = {}

    def record(self, instruction: Any, takes: Sequence[int], shapes: Sequence[Any], number: int) -> None:
        """Records an instruction and what it implies for other values."""
        if len(takes) != len(shapes):
            return
        recorded = _Instruction(instruction, takes, shapes, number)
        for one in {*takes, number}:
            self._touching.setdefault(one, []).append(recorded)
        self._settle([recorded])

    def _settle(self, touched: Iterable[_Instruction]) -> None:
        waiting = list(touched)
        while waiting:
            for number, axis in list(self._implied_axes(waiting.pop())):
                if number not in self.axes and axis.number >= 0:
                    self._record_axis(number, axis)
                    waiting += self._touching.get(number, ())

    def _implied_axes(self, instruction: _Instruction) -> Iterator[tuple[int, Axis]]:
        axes = [self.axes.get(number) for number in instruction.inputs]
        result = self.axes.get(instruction.number) or result_axis(instruction.instruction, instruction.shapes, axes)
        inferred = operand_axes(instruction.instruction, instruction.shapes, axes, result)
        yield from (
            (number, axis)
            for number, axis in zip((*instruction.inputs, instruction.number), (*inferred, result))
            if axis
        )

    def _record_axis(self, number: int, axis: Axis) -> None:
        value = self._block.values[number]
        if value.mode is Mode.ALWAYS and value.kind != "constant":
            return  # a variable is what the script makes it
        self.axes[number] = axis
        self._block.values[number] = value._replace(bytes=-(-value.bytes // self._parts))
