"""Orders steps greedily to keep little memory alive.

Graphcore's compiler tries several schedulers and uses the one with the lowest peak. `liveness.smallest` does the same
with two orders: the program's own, and this one, which always runs the step that frees most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tf_ipu_shim.machine.memory.buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block, Step


def greedy(block: Block, buffers: Buffers | None = None, run: Callable[[int, Step], None] | None = None) -> list[int]:
    """Orders a block's steps, always running the ready step that adds least live memory.

    Steps stay within their segment, and `late` steps run directly before the first consumer of their results. The time
    is proportional to n log n for n steps.

    Example:
        >>> from tf_ipu_shim.machine.memory.description import Value
        >>> block = Block("two chains")
        >>> a, b = (block.add(Value(100, name, "temporary")) for name in "ab")
        >>> for step in [("a", (), (a,)), ("b", (), (b,)), ("end of a", (a,), ())]:
        ...     block.run(*step)
        >>> greedy(block)
        [0, 2, 1]
    """
    order: list[int] = []
    buffers = buffers or Buffers(block)
    run = run or _running(buffers)
    borders = [0, *block.segments, len(block.steps)]
    for first, last in zip(borders, borders[1:]):
        _order_segment(block, buffers, first, last, order, run)
    return order


def _running(buffers: Buffers) -> Callable[[int, Step], None]:
    def run(_: int, step: Step) -> None:
        buffers.read_inputs(step)
        buffers.free(step, buffers.allocate_outputs(step))

    return run


def _order_segment(
    block: Block, buffers: Buffers, first: int, last: int, order: list[int], run: Callable[[int, Step], None]
) -> None:
    wants, steps = _Dependencies(block, first, last), block.steps

    def change(index: int) -> int:
        return buffers.delta_bytes(steps[index]) + wants.bytes_to_load(index)

    heap = [(change(i), i) for i in wants.ready()]
    heapq.heapify(heap)
    done: set[int] = set()
    while heap:
        index = heapq.heappop(heap)[1]
        if index in done:
            continue
        better = set[int]()
        for late in wants.run_loads(index):
            run(len(order), steps[late])
            order.append(late)
            better |= wants.ready_with_loaded(late)
        done.add(index)
        run(len(order), steps[index])
        order.append(index)
        for candidate in (better | wants.run(index)) - done:
            heapq.heappush(heap, (change(candidate), candidate))


class _Dependencies:
    """Dependencies between the steps and values of a segment."""

    def __init__(self, block: Block, first: int, last: int) -> None:
        self._steps, self._values = block.steps, block.values
        # By value: the step that brings it, until that has run.
        self._late = self._late_loads(first, last)
        self._brings = set(self._late.values())
        produced = {
            value_id for index in range(first, last) for value_id in block.steps[index].outputs
        } - self._late.keys()
        self._users: dict[int, list[int]] = {}
        self._waiting = {}  # by step: values of the segment that it still waits for
        for index in range(first, last):
            inputs = set(block.steps[index].inputs)
            self._waiting[index] = len(inputs & produced)
            for value_id in inputs:
                self._users.setdefault(value_id, []).append(index)
        self._left = {value_id: len(indices) for value_id, indices in self._users.items()}
        # The sum of the steps that still need a value: once one is left, it is that step's number.
        self._sums = {value_id: sum(indices) for value_id, indices in self._users.items()}

    def _late_loads(self, first: int, last: int) -> dict[int, int]:
        """Returns values with late loads for this segment, each with its loading step."""
        steps = self._steps[first:last]
        if not any(step.late for step in steps):
            return {}
        consumed = {value_id for step in steps for value_id in step.inputs}
        late = ((index, step) for index, step in enumerate(steps, first) if step.late and not step.inputs)
        return {
            value_id: index for index, step in late if consumed.issuperset(step.outputs) for value_id in step.outputs
        }

    def ready(self) -> list[int]:
        """Returns the steps without unmet dependencies."""
        return [index for index, waiting in self._waiting.items() if not waiting and index not in self._brings]

    def bytes_to_load(self, index: int) -> int:
        """Returns the bytes of a step's inputs that are not loaded yet."""
        if not self._late:
            return 0
        return sum(self._values[value_id].bytes for value_id in set(self._steps[index].inputs) & self._late.keys())

    def ready_with_loaded(self, late: int) -> set[int]:
        """Returns the ready steps that use a load's result."""
        users = (index for value_id in self._steps[late].outputs for index in self._users[value_id])
        return {index for index in users if not self._waiting[index]}

    def run_loads(self, index: int) -> list[int]:
        """Returns the pending loads of a step's inputs and marks them as run."""
        if not self._late:
            return []
        late_loads = dict.fromkeys(
            self._late[value_id] for value_id in self._steps[index].inputs if value_id in self._late
        )
        for late in late_loads:
            for value_id in self._steps[late].outputs:
                del self._late[value_id]
        return list(late_loads)

    def run(self, index: int) -> set[int]:
        """Marks a step as run; returns ready steps that now cost less."""
        better: set[int] = set()
        for value_id in set(self._steps[index].inputs):
            self._left[value_id] -= 1
            self._sums[value_id] -= index
            if self._left[value_id] == 1 and not self._waiting[self._sums[value_id]]:
                better.add(self._sums[value_id])  # it would free the value now
        for value_id in self._steps[index].outputs:
            for user in self._users.get(value_id, ()):
                self._waiting[user] -= 1
                if not self._waiting[user]:
                    better.add(user)
        return better
