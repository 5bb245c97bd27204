"""Sinks loads from remote memory to just before their first use, into a branch if only it uses them.

Values that change are stored where their branch or program ends. An update under a condition therefore keeps the state
of one variable at a time on the chip. Optimizers that accumulate gradients have such updates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tf_ipu_shim.machine.memory import Block, Mode, Step
from tf_ipu_shim.memory_model.hlo.trees import origin

_ARGUMENT_MODES = (Mode.BORROWED, Mode.CARRIED)


class Load(NamedTuple):
    """A load from remote memory.

    Args:
        load: its step.
        store: the step that writes the changed value back; None if it does not change.
    """

    load: Step
    store: Step | None = None


class _BranchValue(NamedTuple):
    """A value in a branch."""

    block: Block
    value_id: int


def sink_loads(block: Block, begin: int, loads: Mapping[int, Load]) -> None:
    """Inserts loads before the first steps that use their values, and stores behind the last step."""
    waiting = _sink_into_branches(block, begin, loads)
    stores = [each.store for each in waiting.values() if each.store is not None]
    steps: list[Step] = []
    for step in block.steps[begin:]:
        steps += [waiting.pop(value_id).load for value_id in dict.fromkeys(step.inputs) if value_id in waiting]
        steps.append(step)
    block.steps[begin:] = [*(each.load for each in waiting.values()), *steps, *stores]


def _sink_into_branches(block: Block, begin: int, loads: Mapping[int, Load]) -> dict[int, Load]:
    """Moves loads used by one conditional only into its branches; returns the others."""
    waiting = dict(loads)
    for index, value_ids in _used_by_one_conditional(block, begin, loads).items():
        step = block.steps[index]
        places = _branch_values(step)
        moved = [value_id for value_id in value_ids if not any(map(_is_returned, places[value_id]))]
        _move_into({value_id: waiting.pop(value_id) for value_id in moved}, places)
        block.steps[index] = step._replace(inputs=tuple(value_id for value_id in step.inputs if value_id not in moved))
    return waiting


def _used_by_one_conditional(block: Block, begin: int, loads: Iterable[int]) -> dict[int, list[int]]:
    """Returns the values that only one conditional uses, by its step index."""
    users: dict[int, list[int]] = {value_id: [] for value_id in loads if value_id not in block.results}
    for index, step in enumerate(block.steps[begin:], begin):
        for value_id in users.keys() & set(step.inputs):
            users[value_id].append(index)
    found: dict[int, list[int]] = {}
    for value_id, indices in users.items():
        if len(indices) == 1 and block.steps[indices[0]].inside and not block.steps[indices[0]].loops:
            found.setdefault(indices[0], []).append(value_id)
    return found


def _move_into(loads: Mapping[int, Load], places: Mapping[int, Iterable[_BranchValue]]) -> None:
    """Moves loads into branches, which then own the values."""
    by_branch: dict[int, tuple[Block, dict[int, Load]]] = {}
    for outer, load in loads.items():
        for inner, value_id in places[outer]:
            inner.values[value_id] = inner.values[value_id]._replace(mode=Mode.NEW)
            if any(value_id in step.inputs for step in inner.steps):
                by_branch.setdefault(id(inner), (inner, {}))[1][value_id] = Load(
                    load.load._replace(outputs=(value_id,)), load.store
                )
    for inner, own in by_branch.values():
        sink_loads(inner, 0, own)


def _branch_values(step: Step) -> dict[int, list[_BranchValue]]:
    """Returns, for each argument of a conditional, its values in the branches."""
    operands = iter(step.inputs[1:])  # the first says which branch runs
    found: dict[int, list[_BranchValue]] = {}
    for inner in step.inside:
        arguments = itertools.takewhile(
            lambda indexed_value: indexed_value[1].mode in _ARGUMENT_MODES, enumerate(inner.values)
        )
        for place, _ in arguments:
            found.setdefault(next(operands), []).append(_BranchValue(inner, place))
    return found


def _is_returned(place: _BranchValue) -> bool:
    """Returns whether a branch returns an argument, or a view of it."""
    return any(origin(place.block, result) == place.value_id for result in place.block.results)
