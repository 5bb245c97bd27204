"""An order of the steps that keeps little alive.

Graphcore's compiler tries several schedulers and takes the one whose peak is lowest. So does `liveness.smallest`, with
two: the order the program came in, and this one, which always runs the step that frees most.
"""

from __future__ import annotations

import heapq

from tf_ipu_shim.machine.memory._buffers import Buffers
from tf_ipu_shim.machine.memory.description import Block


def greedy(block: Block) -> list[int]:
    """Orders a block's steps: of those that can run, next is always the one that adds least to what is alive.

    Steps stay within their segment. Takes a time in proportion to the steps, but for a logarithm.

    Args:
        block: its steps stand in an order in which they can run.

    Returns:
        Numbers of all steps.

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
    buffers = Buffers(block)
    borders = [0, *block.segments, len(block.steps)]
    for first, last in zip(borders, borders[1:]):
        _order_segment(block, buffers, first, last, order)
    return order


def _order_segment(block: Block, buffers: Buffers, first: int, last: int, order: list[int]) -> None:
    made_by = {number: index for index in range(first, last) for number in block.steps[index].gives}
    users: dict[int, list[int]] = {}
    waiting = {}
    for index in range(first, last):
        inside = {number for number in block.steps[index].takes if number in made_by}
        waiting[index] = len(inside)
        for number in set(block.steps[index].takes):
            users.setdefault(number, []).append(index)
    left = {number: len(indices) for number, indices in users.items()}
    # The sum of the steps that still want a value: once there is one left, it is that step's number.
    sums = {number: sum(indices) for number, indices in users.items()}
    heap = [(buffers.change(block.steps[i]), i) for i in range(first, last) if not waiting[i]]
    heapq.heapify(heap)
    done: set[int] = set()
    while heap:
        index = heapq.heappop(heap)[1]
        if index in done:
            continue
        done.add(index)
        order.append(index)
        step = block.steps[index]
        buffers.take(step)
        buffers.free(step, buffers.give(step))
        better: set[int] = set()
        for number in set(step.takes):
            left[number] -= 1
            sums[number] -= index
            if left[number] == 1 and not waiting[sums[number]]:
                better.add(sums[number])  # it would free the value now
        for number in step.gives:
            for user in users.get(number, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    better.add(user)
        for other in better - done:
            heapq.heappush(heap, (buffers.change(block.steps[other]), other))
