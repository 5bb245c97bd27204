"""Where what is not on the chip is brought: right before the first step that takes it, within a branch where that is.

An update that a condition guards, such as that of an optimizer that accumulates gradients, so has the state of one
variable at a time on the chip.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tf_ipu_shim.machine.memory import Block, Mode, Step
from tf_ipu_shim.memory_model.hlo.trees import origin

_GIVEN = (Mode.BORROWED, Mode.CARRIED)


class _Place(NamedTuple):
    """A value in a branch."""

    block: Block
    number: int


def put_loads(block: Block, begin: int, loads: Mapping[int, Step]) -> None:
    """Puts loads into what an IPU runs, each before the first step that takes what it brings.

    Args:
        block: what the IPU runs.
        begin: the number of the first step that may take something of them.
        loads: steps by the number of the value that they bring.
    """
    waiting = _put_into_branches(block, begin, loads)
    steps: list[Step] = []
    for step in block.steps[begin:]:
        steps += [waiting.pop(number) for number in dict.fromkeys(step.takes) if number in waiting]
        steps.append(step)
    block.steps[begin:] = [*waiting.values(), *steps]


def _put_into_branches(block: Block, begin: int, loads: Mapping[int, Step]) -> dict[int, Step]:
    """Puts loads that one conditional alone takes into its branches; returns the others."""
    waiting = dict(loads)
    for index, numbers in _wanted_by_one(block, begin, loads).items():
        step = block.steps[index]
        places = _places(step)
        moved = [number for number in numbers if not any(map(_is_handed_on, places[number]))]
        _put_into({number: waiting.pop(number) for number in moved}, places)
        block.steps[index] = step._replace(takes=tuple(number for number in step.takes if number not in moved))
    return waiting


def _wanted_by_one(block: Block, begin: int, loads: Iterable[int]) -> dict[int, list[int]]:
    """The values that one conditional takes and nothing else, by the number of its step."""
    users: dict[int, list[int]] = {number: [] for number in loads if number not in block.results}
    for index, step in enumerate(block.steps[begin:], begin):
        for number in users.keys() & set(step.takes):
            users[number].append(index)
    found: dict[int, list[int]] = {}
    for number, indices in users.items():
        if len(indices) == 1 and block.steps[indices[0]].inside and not block.steps[indices[0]].loops:
            found.setdefault(indices[0], []).append(number)
    return found


def _put_into(loads: Mapping[int, Step], places: Mapping[int, Iterable[_Place]]) -> None:
    """Puts loads into branches, which then have the values as their own."""
    by_branch: dict[int, tuple[Block, dict[int, Step]]] = {}
    for outer, load in loads.items():
        for inner, number in places[outer]:
            inner.values[number] = inner.values[number]._replace(mode=Mode.NEW)
            if any(number in step.takes for step in inner.steps):
                by_branch.setdefault(id(inner), (inner, {}))[1][number] = load._replace(gives=(number,))
    for inner, own in by_branch.values():
        put_loads(inner, 0, own)


def _places(step: Step) -> dict[int, list[_Place]]:
    """For what the branches of a conditional are given, the numbers that it has in them."""
    given = iter(step.takes[1:])  # the first says which branch runs
    found: dict[int, list[_Place]] = {}
    for inner in step.inside:
        arguments = itertools.takewhile(lambda one: one[1].mode in _GIVEN, enumerate(inner.values))
        for place, _ in arguments:
            found.setdefault(next(given), []).append(_Place(inner, place))
    return found


def _is_handed_on(place: _Place) -> bool:
    """Whether a branch gives what it is given, or a view of it."""
    return any(origin(place.block, result) == place.number for result in place.block.results)
