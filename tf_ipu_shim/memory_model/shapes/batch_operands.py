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


def operand_axes(instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], made: Found) -> list[Found]:
    """Returns the mini-batch axis of each operand, as far as result and other operands determine it."""
    opcode = instruction.opcode
    if opcode == "dot":
        return [one or _of_matmul_operand(instruction, shapes, axes, made, place) for place, one in enumerate(axes)]
    if made is None:
        return list(axes)
    if opcode in _ALIKE:
        return [one or _same_place(instruction.shape, shape, made) for one, shape in zip(axes, shapes)]
    rule = _RULES.get(opcode)
    return [axes[0] or rule(instruction, shapes[0], made), *axes[1:]] if rule is not None else list(axes)


def _same_place(made: Any, shape: Any, axis: Axis) -> Found:
    if len(shape.dimensions) == len(made.dimensions):
        return axis if shape.dimensions[axis.number] == made.dimensions[axis.number] else None
    return None


def _broadcast(instruction: Any, shape: Any, axis: Axis) -> Found:
    at = list(instruction.dimensions)
    return axis._replace(number=at.index(axis.number)) if axis.number in at else None


def _transposed(instruction: Any, shape: Any, axis: Axis) -> Found:
    return axis._replace(number=instruction.dimensions[axis.number])


def _reshaped(instruction: Any, shape: Any, axis: Axis) -> Found:
    return reshaped_axis(instruction.shape, shape, axis)


def _reduced(instruction: Any, shape: Any, axis: Axis) -> Found:
    kept = [number for number in range(len(shape.dimensions)) if number not in instruction.dimensions]
    return axis._replace(number=kept[axis.number])


def _of_matmul_operand(
    instruction: Any, shapes: Sequence[Any], axes: Sequence[Found], made: Found, place: int
) -> Found:
    """Returns the mini-batch axis of a matmul operand: as in the result, or summed with the other's."""
    numbers = instruction.dot_dimension_numbers
    sides = [
        (list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)),
        (list(numbers.rhs_batch_dimensions), list(numbers.rhs_contracting_dimensions)),
    ]
    (batch, summed), other = sides[place], axes[1 - place]
    for here, there in zip((batch, summed), sides[1 - place]):
        if other is not None and other.number in there:
            return other._replace(number=here[there.index(other.number)])
    if made is None:
        return None
    free = [[n for n in range(len(shape.dimensions)) if n not in b + s] for shape, (b, s) in zip(shapes, sides)]
    before = len(batch) + (len(free[0]) if place else 0)
    if made.number < len(batch):
        return made._replace(number=batch[made.number])
    at = made.number - before
    return made._replace(number=free[place][at]) if 0 <= at < len(free[place]) else None


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
        block: the values are in.
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
        made = _Instruction(instruction, takes, shapes, number)
        for one in {*takes, number}:
            self._touching.setdefault(one, []).append(made)
        self._settle([made])

    def _settle(self, touched: Iterable[_Instruction]) -> None:
        waiting = list(touched)
        while waiting:
            for number, axis in list(self._implied_axes(waiting.pop())):
                if number not in self.axes and axis.number >= 0:
                    self._record_axis(number, axis)
                    waiting += self._touching.get(number, ())

    def _implied_axes(self, made: _Instruction) -> Iterator[tuple[int, Axis]]:
        axes = [self.axes.get(number) for number in made.inputs]
        result = self.axes.get(made.number) or result_axis(made.instruction, made.shapes, axes)
        told = operand_axes(made.instruction, made.shapes, axes, result)
        yield from ((number, axis) for number, axis in zip((*made.inputs, made.number), (*told, result)) if axis)

    def _record_axis(self, number: int, axis: Axis) -> None:
        value = self._block.values[number]
        if value.mode is Mode.ALWAYS and value.kind != "constant":
            return  # a variable is what the script makes it
        self.axes[number] = axis
        self._block.values[number] = value._replace(bytes=-(-value.bytes // self._parts))
