"""Tracks the buffers that hold a block's values as its steps run, for liveness and scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tf_ipu_shim.machine.memory.description import Block, Mode, Step

_OUTSIDE = (Mode.ALWAYS, Mode.CARRIED, Mode.BORROWED)  # in memory that is there whatever the block does


class Buffers:
    """The buffers of one block at a point of its execution.

    Linear: every step costs a time in proportion to the values it touches.

    Attributes:
        overwritten: (buffer, value) for each value that took over another one's buffer, in order.
        live: bytes alive now, without always-live ones and the caller's.
    """

    def __init__(self, block: Block) -> None:
        self._values = block.values
        self._modes = [value.mode for value in block.values]
        self._sizes = [value.bytes for value in block.values]
        self._uses = [0] * len(block.values)
        for step in block.steps:
            for value_id in step.inputs:
                self._uses[value_id] += 1
        for value_id in block.results:
            self._uses[value_id] += 1
        self._of: list[tuple[int, ...]] = [()] * len(block.values)
        self._pending: list[int] = []
        self._outside: list[bool] = []
        self.bytes: list[int] = []
        self.value: list[int] = []
        self.overwritten: list[tuple[int, int]] = []
        self.live = 0
        for value_id, mode in enumerate(self._modes):
            if mode in _OUTSIDE:
                self._of[value_id] = (self._new(value_id, outside=True),)

    def _new(self, value_id: int, outside: bool = False) -> int:
        self.bytes.append(self._sizes[value_id])
        self.value.append(value_id)
        self._outside.append(outside)
        self._pending.append(self._uses[value_id])
        return len(self.bytes) - 1

    def read_inputs(self, step: Step) -> None:
        """Reads a step's inputs."""
        for value_id in step.inputs:
            for buffer in self._of[value_id]:
                self._pending[buffer] -= 1

    def allocate_outputs(self, step: Step) -> list[int]:
        """Creates a step's outputs; returns the buffers allocated for them."""
        allocated = []
        for value_id in step.outputs:
            mode = self._modes[value_id]
            if mode is Mode.VIEW:
                reused = self._viewed_buffers(self._values[value_id].of)
            else:
                reused = self._overwritable(value_id) if mode is Mode.IN_PLACE else ()
                if not reused:
                    buffer = self._new(value_id)
                    self._of[value_id] = (buffer,)
                    self.live += self._sizes[value_id]
                    allocated.append(buffer)
                    continue
                self.overwritten.append((reused[0], value_id))
            self._of[value_id] = reused
            for buffer in reused:
                self._pending[buffer] += self._uses[value_id]
        return allocated

    def _viewed_buffers(self, of: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the distinct buffers that a view covers."""
        if len(of) == 1:
            return self._of[of[0]]
        return tuple({buffer: None for value_id in of for buffer in self._of[value_id]})

    def inside(self, step: Step, allocated: Sequence[int]) -> Sequence[Block]:
        """Returns the inner blocks to run; branches may overwrite only inputs that die there."""
        if step.loops or not step.inside:
            return step.inside
        if all(self._modes[self.value[buffer]] is not Mode.IN_PLACE for buffer in allocated):
            return step.inside
        return [_read_only(block) for block in step.inside]

    def _overwritable(self, value_id: int) -> tuple[int, ...]:
        """Returns the buffer of an operand that dies, has the same size and may be overwritten, or nothing."""
        value, size = self._values[value_id], self._sizes[value_id]
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
        for buffer in {buffer for value_id in step.inputs for buffer in self._of[value_id]}.union(allocated):
            if not self._pending[buffer] and not self._outside[buffer]:
                self.live -= self.bytes[buffer]
                freed.append(buffer)
        return freed

    def delta_bytes(self, step: Step) -> int:
        """Returns by how many bytes a step would change the live memory if it ran now."""
        aliased: dict[int, int] = {}
        for value_id in step.inputs:
            for buffer in self._of[value_id]:
                aliased[buffer] = aliased.get(buffer, 0) + 1
        pending, outside = self._pending, self._outside
        dying = {buffer for buffer, times in aliased.items() if pending[buffer] == times and not outside[buffer]}
        change = 0
        for value_id in step.outputs:
            mode = self._modes[value_id]
            if mode is Mode.VIEW:
                dying.difference_update(self._viewed_buffers(self._values[value_id].of))
                continue
            overwritten = self._overwritten_by(value_id, aliased) if mode is Mode.IN_PLACE else None
            if overwritten is None:
                change += self._sizes[value_id]
            else:
                dying.discard(overwritten)
        for buffer in dying:
            change -= self.bytes[buffer]
        return change

    def _overwritten_by(self, value_id: int, aliased: Mapping[int, int]) -> int | None:
        """Returns the buffer of an equally large operand that dies with a step, or None."""
        size = self._sizes[value_id]
        for operand in self._values[value_id].of:
            buffers = self._of[operand]
            if len(buffers) == 1 and aliased.get(buffers[0]) == self._pending[buffers[0]]:
                if self.bytes[buffers[0]] == size == self._sizes[operand]:
                    return buffers[0]
        return None


def _read_only(block: Block) -> Block:
    """Returns a copy of a block that writes to nothing of its caller."""
    if all(value.mode is not Mode.CARRIED for value in block.values):
        return block
    copy = Block(block.name)
    copy.keeps_order = block.keeps_order
    copy.values = [
        value._replace(mode=Mode.BORROWED) if value.mode is Mode.CARRIED else value for value in block.values
    ]
    copy.steps, copy.segments, copy.results = block.steps, block.segments, block.results
    return copy
