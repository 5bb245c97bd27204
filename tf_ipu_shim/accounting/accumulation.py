"""A training step as it would be with the gradients of several mini-batches accumulated, which the script does not do.

Each gradient that an update takes is added to an accumulator as soon as it is made; updates come after all that, and
take the accumulators in the gradients' place. So optimizer state, where it is in remote memory, is never there together
with activations.
"""

from __future__ import annotations

from collections.abc import Iterator

from tf_ipu_shim.machine.memory import Block, Mode, Value


def trains(block: Block) -> bool:
    """Whether a program has updates that take gradients, in itself or in a loop."""
    return bool(_Training(block).gradients) or any(trains(inner) for step in block.steps for inner in step.inside)


def accumulate(block: Block) -> None:
    """Has a program accumulate its gradients; changes the block.

    Args:
        block: all that an IPU runs.
    """
    for step in block.steps:
        for inner in step.inside:
            accumulate(inner)
    training = _Training(block)
    if training.gradients:
        training.write()


class _Training:
    """One block's steps, told apart.

    Attributes:
        gradients: values that updates take and gradient ops made, by number; views of one of the same size are it.
    """

    def __init__(self, block: Block) -> None:
        self._block, self._behind = block, set[int]()
        self._updates = set(self._follow())
        steps = block.steps
        made = {number for index in self._updates for number in steps[index].gives}
        taken = {number for index in self._updates for number in steps[index].takes}
        self.gradients = {number: self._source(number) for number in taken & self._behind - made}
        self._updates.update(self._only_for_updates())

    def _follow(self) -> Iterator[int]:
        """The steps that work on gradients without making any."""
        for index, step in enumerate(self._block.steps):
            is_gradient = any(self._block.values[number].kind == "gradient" for number in step.gives)
            if is_gradient or not self._behind.isdisjoint(step.takes):
                self._behind.update(step.gives)
                if not is_gradient:
                    yield index

    def _only_for_updates(self) -> list[int]:
        """Steps that bring what only updates take, such as state from remote memory."""
        steps = enumerate(self._block.steps)
        others = {number for index, step in steps if index not in self._updates for number in step.takes}
        steps = enumerate(self._block.steps)
        return [index for index, step in steps if step.gives and not step.takes and others.isdisjoint(step.gives)]

    def _source(self, number: int) -> int:
        value = self._block.values[number]
        while value.mode is Mode.VIEW and len(value.of) == 1 and self._block.values[value.of[0]].bytes == value.bytes:
            number = value.of[0]
            value = self._block.values[number]
        return number

    def write(self) -> None:
        """Writes the steps anew: accumulators, the mini-batch, and then all updates."""
        block, steps, borders = self._block, list(self._block.steps), set(self._block.segments)
        block.steps, block.segments, block.liveness = [], [], None
        sums = {source: self._accumulator(source) for source in dict.fromkeys(self.gradients.values())}
        left = dict(sums)
        done: dict[int, int] = {}
        for index, step in enumerate(steps):
            if index in borders:
                block.begin_segment()
            if index in self._updates:
                continue
            block.steps.append(step)
            for number in [number for number in step.gives if number in left]:
                given = block.values[number]
                added = Value(given.bytes, given.owner, "accumulator", Mode.IN_PLACE, (left[number], number))
                done[number] = block.add(added)
                block.run(f"accumulation of {given.owner}", (number, left.pop(number)), (done[number],))
        block.begin_segment()
        instead = {number: done[source] for number, source in self.gradients.items() if source in done}
        for index in sorted(self._updates):
            step = steps[index]
            for number in step.gives:
                value = block.values[number]
                block.values[number] = value._replace(of=tuple(instead.get(one, one) for one in value.of))
            block.steps.append(step._replace(takes=tuple(instead.get(one, one) for one in step.takes)))

    def _accumulator(self, source: int) -> int:
        value = self._block.values[source]
        number = self._block.add(Value(value.bytes, value.owner, "accumulator"))
        self._block.run(f"accumulator of {value.owner}", (), (number,))
        return number
