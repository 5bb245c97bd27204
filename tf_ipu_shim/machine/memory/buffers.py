"""Which memory each value is in while steps run in some order. Liveness and scheduling both go by this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tf_ipu_shim.machine.memory.description import Block, Mode, Step

_OUTSIDE = (Mode.ALWAYS, Mode.CARRIED, Mode.BORROWED)  # in memory that is there whatever the block does


class Buffers:
    """The memory of one block's values at some point of a run through its steps.

    Linear: every step costs a time in proportion to the values it touches.

    Args:
        block: the block.

    Attributes:
        bytes: size of each buffer.
        value: the value each buffer was made for.
        overwritten: (buffer, value) for each value that took over another one's buffer, in order.
        live: bytes alive now, without always-live ones and those of the caller.
    """

    def __init__(self, block: Block) -> None:
        self._values = block.values
        self._modes = [value.mode for value in block.values]
        self._sizes = [value.bytes for value in block.values]
        self._uses = [0] * len(block.values)
        for step in block.steps:
            for number in step.takes:
                self._uses[number] += 1
        for number in block.results:
            self._uses[number] += 1
        self._of: list[tuple[int, ...]] = [()] * len(block.values)
        self._pending: list[int] = []
        self._outside: list[bool] = []
        self.bytes: list[int] = []
        self.value: list[int] = []
        self.overwritten: list[tuple[int, int]] = []
        self.live = 0
        for number, mode in enumerate(self._modes):
            if mode in _OUTSIDE:
                self._of[number] = (self._new(number, outside=True),)

    def _new(self, number: int, outside: bool = False) -> int:
        self.bytes.append(self._sizes[number])
        self.value.append(number)
        self._outside.append(outside)
        self._pending.append(self._uses[number])
        return len(self.bytes) - 1

    def take(self, step: Step) -> None:
        """The step reads its values."""
        for number in step.takes:
            for buffer in self._of[number]:
                self._pending[buffer] -= 1

    def give(self, step: Step) -> list[int]:
        """The step's values come into being; returns the buffers that are made for them."""
        made = []
        for number in step.gives:
            mode = self._modes[number]
            if mode is Mode.VIEW:
                found = self._seen_through(self._values[number].of)
            else:
                found = self._overwritable(number) if mode is Mode.IN_PLACE else ()
                if not found:
                    buffer = self._new(number)
                    self._of[number] = (buffer,)
                    self.live += self._sizes[number]
                    made.append(buffer)
                    continue
                self.overwritten.append((found[0], number))
            self._of[number] = found
            for buffer in found:
                self._pending[buffer] += self._uses[number]
        return made

    def _seen_through(self, of: tuple[int, ...]) -> tuple[int, ...]:
        """The buffers of what a view is made of, each once."""
        if len(of) == 1:
            return self._of[of[0]]
        return tuple({buffer: None for number in of for buffer in self._of[number]})

    def inside(self, step: Step, made: Sequence[int]) -> Sequence[Block]:
        """What runs inside a step, once it has given: branches write over what they are given only where that dies."""
        if step.loops or not step.inside:
            return step.inside
        if all(self._modes[self.value[buffer]] is not Mode.IN_PLACE for buffer in made):
            return step.inside
        return [_reading(block) for block in step.inside]

    def _overwritable(self, number: int) -> tuple[int, ...]:
        """The buffer of an operand that dies, is as large, and may be written to; else nothing."""
        value, size = self._values[number], self._sizes[number]
        for operand in value.of:
            buffers = self._of[operand]
            if len(buffers) == 1 and self._dies_with(operand, buffers[0], size, value.home):
                return buffers
        return ()

    def _dies_with(self, operand: int, buffer: int, size: int, home: int) -> bool:
        if self._pending[buffer] or not self.bytes[buffer] == size == self._sizes[operand]:
            return False
        if not self._outside[buffer]:
            return True
        return self._modes[self.value[buffer]] is Mode.CARRIED or self.value[buffer] == home

    def free(self, step: Step, made: list[int]) -> list[int]:
        """After the step: returns the buffers that nobody needs any more, and takes them off."""
        freed = []
        for buffer in {buffer for number in step.takes for buffer in self._of[number]}.union(made):
            if not self._pending[buffer] and not self._outside[buffer]:
                self.live -= self.bytes[buffer]
                freed.append(buffer)
        return freed

    def change(self, step: Step) -> int:
        """By how many bytes the step would change what is alive, if it ran now."""
        taken: dict[int, int] = {}
        for number in step.takes:
            for buffer in self._of[number]:
                taken[buffer] = taken.get(buffer, 0) + 1
        pending, outside = self._pending, self._outside
        dying = {buffer for buffer, times in taken.items() if pending[buffer] == times and not outside[buffer]}
        change = 0
        for number in step.gives:
            mode = self._modes[number]
            if mode is Mode.VIEW:
                dying.difference_update(self._seen_through(self._values[number].of))
                continue
            overwritten = self._overwritten_by(number, taken) if mode is Mode.IN_PLACE else None
            if overwritten is None:
                change += self._sizes[number]
            else:
                dying.discard(overwritten)
        for buffer in dying:
            change -= self.bytes[buffer]
        return change

    def _overwritten_by(self, number: int, taken: Mapping[int, int]) -> int | None:
        """The buffer of an operand that would die with a step that takes buffers that often, and is as large."""
        size = self._sizes[number]
        for operand in self._values[number].of:
            buffers = self._of[operand]
            if len(buffers) == 1 and taken.get(buffers[0]) == self._pending[buffers[0]]:
                if self.bytes[buffers[0]] == size == self._sizes[operand]:
                    return buffers[0]
        return None


def _reading(block: Block) -> Block:
    """The same, but that it writes to nothing of its caller's."""
    if all(value.mode is not Mode.CARRIED for value in block.values):
        return block
    other = Block(block.name)
    other.keeps_order = block.keeps_order
    other.values = [
        value._replace(mode=Mode.BORROWED) if value.mode is Mode.CARRIED else value for value in block.values
    ]
    other.steps, other.segments, other.results = block.steps, block.segments, block.results
    return other
