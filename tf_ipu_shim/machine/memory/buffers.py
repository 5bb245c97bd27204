"""Assigns values to buffers while steps run in some order, for liveness and scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tf_ipu_shim.machine.memory.description import Block, Mode, Step

_OUTSIDE = (Mode.ALWAYS, Mode.CARRIED, Mode.BORROWED)  # in memory that is there whatever the block does


class Buffers:
    """The buffers of one block at a point of its execution.

    Linear: every step costs a time in proportion to the values it touches.

    Attributes:
        overwritten: (buffer, value) for each value that took over another one's buffer, in order.
        live: bytes alive now, without always-live ones and those of the caller.
    """

    def __init__(self, block: Block) -> None:
        self._values = block.values
        self._modes = [value.mode for value in block.values]
        self._sizes = [value.bytes for value in block.values]
        self._uses = [0] * len(block.values)
        for step in block.steps:
            for number in step.inputs:
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

    def read_inputs(self, step: Step) -> None:
        """Reads a step's inputs."""
        for number in step.inputs:
            for buffer in self._of[number]:
                self._pending[buffer] -= 1

    def allocate_outputs(self, step: Step) -> list[int]:
        """Creates a step's outputs; returns the buffers allocated for them."""
        allocated = []
        for number in step.outputs:
            mode = self._modes[number]
            if mode is Mode.VIEW:
                found = self._viewed_buffers(self._values[number].of)
            else:
                found = self._overwritable(number) if mode is Mode.IN_PLACE else ()
                if not found:
                    buffer = self._new(number)
                    self._of[number] = (buffer,)
                    self.live += self._sizes[number]
                    allocated.append(buffer)
                    continue
                self.overwritten.append((found[0], number))
            self._of[number] = found
            for buffer in found:
                self._pending[buffer] += self._uses[number]
        return allocated

    def _viewed_buffers(self, of: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the distinct buffers that a view covers."""
        if len(of) == 1:
            return self._of[of[0]]
        return tuple({buffer: None for number in of for buffer in self._of[number]})

    def inside(self, step: Step, allocated: Sequence[int]) -> Sequence[Block]:
        """Returns the inner blocks to run; branches may overwrite only inputs that die there."""
        if step.loops or not step.inside:
            return step.inside
        if all(self._modes[self.value[buffer]] is not Mode.IN_PLACE for buffer in allocated):
            return step.inside
        return [_read_only(block) for block in step.inside]

    def _overwritable(self, number: int) -> tuple[int, ...]:
        """Returns the buffer of an operand that dies, has the same size and may be overwritten, or nothing."""
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

    def free(self, step: Step, allocated: list[int]) -> list[int]:
        """Releases and returns the buffers that no later step needs."""
        freed = []
        for buffer in {buffer for number in step.inputs for buffer in self._of[number]}.union(allocated):
            if not self._pending[buffer] and not self._outside[buffer]:
                self.live -= self.bytes[buffer]
                freed.append(buffer)
        return freed

    def delta_bytes(self, step: Step) -> int:
        """Returns by how many bytes a step would change the live memory if it ran now."""
        aliased: dict[int, int] = {}
        for number in step.inputs:
            for buffer in self._of[number]:
                aliased[buffer] = aliased.get(buffer, 0) + 1
        pending, outside = self._pending, self._outside
        dying = {buffer for buffer, times in aliased.items() if pending[buffer] == times and not outside[buffer]}
        change = 0
        for number in step.outputs:
            mode = self._modes[number]
            if mode is Mode.VIEW:
                dying.difference_update(self._viewed_buffers(self._values[number].of))
                continue
            overwritten = self._overwritten_by(number, aliased) if mode is Mode.IN_PLACE else None
            if overwritten is None:
                change += self._sizes[number]
            else:
                dying.discard(overwritten)
        for buffer in dying:
            change -= self.bytes[buffer]
        return change

    def _overwritten_by(self, number: int, aliased: Mapping[int, int]) -> int | None:
        """Returns the buffer of an equally large operand that dies with a step, or None."""
        size = self._sizes[number]
        for operand in self._values[number].of:
            buffers = self._of[operand]
            if len(buffers) == 1 and aliased.get(buffers[0]) == self._pending[buffers[0]]:
                if self.bytes[buffers[0]] == size == self._sizes[operand]:
                    return buffers[0]
        return None


def _read_only(block: Block) -> Block:
    """Returns a copy of a block that writes to nothing of its caller."""
    if all(value.mode is not Mode.CARRIED for value in block.values):
        return block
    other = Block(block.name)
    other.keeps_order = block.keeps_order
    other.values = [
        value._replace(mode=Mode.BORROWED) if value.mode is Mode.CARRIED else value for value in block.values
    ]
    other.steps, other.segments, other.results = block.steps, block.segments, block.results
    return other
