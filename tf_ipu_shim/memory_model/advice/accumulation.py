"""Rewrites a training step's blocks as if gradients of several mini-batches were accumulated (for advice).

Each gradient of an update is added to an accumulator as soon as it is computed. Updates are last, and use the
accumulators instead of the gradients. So optimizer state in Streaming Memory is never on the IPU together with
activations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tf_ipu_shim.machine.memory import Block, Mode, Step, Value


def has_updates(block: Block) -> bool:
    """Returns whether a program, or a loop in it, has variable updates that consume gradients."""
    return any(map(has_updates, _inside(block))) or bool(_Training(block).gradients)


def accumulate(block: Block, keeps: bool) -> bool:
    """Rewrites a block, in place, to accumulate its gradients; returns whether it could."""
    if any([accumulate(inner, keeps) for inner in _inside(block)]):
        return True
    training = _Training(block)
    if training.gradients:
        training.rewrite(keeps)
    return bool(training.gradients)


def _inside(block: Block) -> Iterator[Block]:
    return (inner for step in block.steps for inner in step.inside)


class _Training:
    """Classifies the steps of one block: forward, gradients, updates.

    Attributes:
        gradients: values that gradient ops made and updates use, by number; a view of the same size counts as the
            value.
    """

    def __init__(self, block: Block) -> None:
        self._block, self._behind = block, set[int]()
        self._updates = set(self._gradient_steps())
        steps = block.steps
        updated_values = {value_id for index in self._updates for value_id in steps[index].outputs}
        used = {value_id for index in self._updates for value_id in steps[index].inputs}
        self.gradients = {value_id: self._source(value_id) for value_id in used & self._behind - updated_values}
        self._updates.update(self._only_for_updates())

    def _gradient_steps(self) -> Iterator[int]:
        """Yields the steps that process gradients without computing them."""
        for index, step in enumerate(self._block.steps):
            is_gradient = any(self._block.values[value_id].kind == "gradient" for value_id in step.outputs)
            if is_gradient or not self._behind.isdisjoint(step.inputs):
                self._behind.update(step.outputs)
                if not is_gradient:
                    yield index

    def _only_for_updates(self) -> set[int]:
        """Returns steps that load data only for updates, such as remote optimizer state, and their followers."""
        others = set(self._block.results)
        found: set[int] = set()
        for index in range(len(self._block.steps) - 1, -1, -1):
            step = self._block.steps[index]
            if index not in self._updates:
                if step.outputs and others.isdisjoint(step.outputs) and self._behind.isdisjoint(step.outputs):
                    found.add(index)
                else:
                    others.update(step.inputs)
        producers = {value_id: index for index, step in enumerate(self._block.steps) for value_id in step.outputs}
        for index in sorted(found):
            if (
                not {producers[value_id] for value_id in self._block.steps[index].inputs if value_id in producers}
                <= found
            ):
                found.remove(index)
        return found

    def _source(self, value_id: int) -> int:
        value = self._block.values[value_id]
        while value.mode is Mode.VIEW and len(value.of) == 1 and self._block.values[value.of[0]].bytes == value.bytes:
            value_id = value.of[0]
            value = self._block.values[value_id]
        return value_id

    def rewrite(self, keeps: bool) -> None:
        """Rewrites the steps: accumulators, the mini-batch, then all updates."""
        block, steps, borders = self._block, list(self._block.steps), set(self._block.segments)
        block.steps, block.segments, block.liveness = [], [], None
        sums = {source: self._accumulator(source) for source in dict.fromkeys(self.gradients.values())}
        remaining = dict(sums)
        done: dict[int, int] = {}
        for index, step in enumerate(steps):
            if index in borders:
                block.begin_segment()
            if index in self._updates:
                continue
            block.steps.append(step)
            for value_id in [value_id for value_id in step.outputs if value_id in remaining]:
                value = block.values[value_id]
                added = Value(value.bytes, value.owner, "accumulator", Mode.IN_PLACE, (remaining[value_id], value_id))
                done[value_id] = block.add(added)
                block.run(f"accumulation of {value.owner}", (value_id, remaining.pop(value_id)), (done[value_id],))
        block.results += done.values() if keeps else ()
        instead = {value_id: done[source] for value_id, source in self.gradients.items() if source in done}
        self._write_updates(steps, instead, by_variable=keeps)

    def _write_updates(self, steps: Sequence[Step], instead: Mapping[int, int], by_variable: bool) -> None:
        """Writes all updates, with some input values substituted.

        Ops guarded by a condition are in the order of the optimizer's updates, variable by variable.
        """
        block, last = self._block, ""
        block.begin_segment()
        order = self._by_variable(steps) if by_variable else (("", index) for index in sorted(self._updates))
        for owner, index in order:
            if owner != last:
                block.begin_segment()
            last, step = owner, steps[index]
            for output in step.outputs:
                value = block.values[output]
                block.values[output] = value._replace(
                    of=tuple(instead.get(value_id, value_id) for value_id in value.of)
                )
            block.steps.append(step._replace(inputs=tuple(instead.get(value_id, value_id) for value_id in step.inputs)))

    def _by_variable(self, steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
        """Yields the steps of updates, op by op, each with the earlier steps it depends on."""
        producers = {value_id: index for index in self._updates for value_id in steps[index].outputs}
        groups: dict[str, list[int]] = {}
        for index in sorted(self._updates):
            if steps[index].inputs:
                groups.setdefault(steps[index].owner, []).append(index)
        done: set[int] = set()
        for owner, group in groups.items():
            pending = group[::-1]
            while pending:
                index = pending[-1]
                before = {producers[value_id] for value_id in steps[index].inputs if value_id in producers} - done
                if before and index not in done:
                    pending += sorted(before, reverse=True)
                    continue
                pending.pop()
                if index not in done:
                    done.add(index)
                    yield owner, index
        yield from (("", index) for index in sorted(self._updates - done))

    def _accumulator(self, source: int) -> int:
        value = self._block.values[source]
        value_id = self._block.add(Value(value.bytes, value.owner, "accumulator"))
        self._block.run(f"accumulator of {value.owner}", (), (value_id,))
        return value_id
