"""Represents a program under what-if changes, and finds two changes with which it fits."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.machine.memory import IpuPlan, MemoryPlan, Saving
from tf_ipu_shim.memory_model.shapes.sizes import Sizes
from tf_ipu_shim.memory_model.variables.storage import Storage

_MAX_PLANS = 8  # that pairs of changes are planned


class Scenario(NamedTuple):
    """A program under changed options.

    Args:
        accumulates: whether it accumulates gradients, which the script does not do.
    """

    storage: Storage
    sizes: Sizes
    request: ProgramRequest
    ipus: int
    accumulates: bool = False


Lower = Callable[[ProgramRequest, int], LoweredProgram]
"""Lowers a program for a number of IPUs."""

Named = tuple[str, Scenario]
"""The action, and the changed program."""


class Group(NamedTuple):
    """Alternative changes of one kind.

    Args:
        options: each applies its change to an already changed program, or returns None if it cannot.
        bytes: the bytes that each saves separately, at most.
        moves: whether layers move to other IPUs: changes without such moves are tried first.
    """

    options: Sequence[Callable[[Scenario], Named | None]]
    bytes: float
    moves: bool = False


def as_option(now: Scenario, action: str, change: Scenario) -> Callable[[Scenario], Named | None]:
    """Returns a function that applies a change to an already changed program."""

    def option(base: Scenario) -> Named | None:
        together = combine(now, base, change)
        return None if together is None else (action, together)

    return option


def combine(now: Scenario, first_scenario: Scenario, second_scenario: Scenario) -> Scenario | None:
    """Combines two changes; None if both change the same thing or one invalidates the other.

    Example:
        >>> now = Scenario(Storage(), Sizes(), ProgramRequest.__new__(ProgramRequest), 1)
        >>> halves = now._replace(sizes=Sizes(float16=True))
        >>> recomputing = now._replace(storage=Storage(recomputes=True))
        >>> both = combine(now, halves, recomputing)
        >>> both.sizes.float16, both.storage.recomputes, combine(now, halves, halves)
        (True, True, None)
    """
    if (
        first_scenario.accumulates != second_scenario.accumulates
        and now.request is not (first_scenario if second_scenario.accumulates else second_scenario).request
    ):
        return None  # gradients are accumulated in blocks that are those of the program as it is
    found: dict[str, Any] = {}
    for field in Scenario._fields:
        before, first, second = (getattr(each, field) for each in (now, first_scenario, second_scenario))
        if first is before or second is before or first == before or second == before:
            found[field] = second if first is before or first == before else first
        elif isinstance(before, Storage | Sizes):
            merged = _merged(before, first, second)
            if merged is None:
                return None
            found[field] = merged
        else:
            return None
    return Scenario(**found)


def _merged(before: Any, first_scenario: Any, second_scenario: Any) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(before):
        was, first, second = (getattr(each, field.name) for each in (before, first_scenario, second_scenario))
        if first != was and second != was:
            if not isinstance(was, frozenset) or first == second:
                return None
            changes[field.name] = first | second
        elif first != was or second != was:
            changes[field.name] = first if first != was else second
    return dataclasses.replace(before, **changes)


def first_fitting_pair(
    groups: Iterable[Group], now: Scenario, full: IpuPlan, plan_with: Callable[[Scenario], MemoryPlan | None]
) -> Saving | None:
    """Returns the first pair of changes with which a program fits, or None after few tries."""
    over = full.peak_bytes - full.limit_bytes
    pairs = [pair for pair in itertools.combinations(groups, 2) if sum(group.bytes for group in pair) >= over]
    pairs.sort(key=lambda pair: (any(group.moves for group in pair), -sum(group.bytes for group in pair)))
    tries = (named for pair in pairs for named in _pairs(pair, now))
    for action, change in itertools.islice(tries, _MAX_PLANS):
        planned = plan_with(change)
        if planned is not None and planned.fits:
            largest = max(ipu.peak_bytes for ipu in planned.ipus)
            return Saving(action, full.peak_bytes - largest, True)
    return None


def _pairs(pair: tuple[Group, Group], now: Scenario) -> Iterator[Named]:
    """Yields all pairs of options; changes of the program itself are second, as they depend on the rest."""
    for first_scenario, second_scenario in itertools.product(pair[0].options, pair[1].options):
        first = first_scenario(now)
        second = None if first is None else second_scenario(first[1])
        if first is not None and second is not None:
            yield f"{first[0]}, and {second[0]}", second[1]
