"""Cases of a test that are left to `make test-slow`: another of the same test says as much of what usually breaks."""

import collections
from collections.abc import Iterable
from typing import Any

import pytest


def slowly(*case: Any) -> Any:
    """A case that `make test-slow` runs."""
    return pytest.param(*case, marks=pytest.mark.slow)


def leave_out_cases(items: Iterable[pytest.Item]) -> None:
    """Marks as slow all but N cases of each test that is marked `ci_cases(N)`; these N are spread over all."""
    cases_of = collections.defaultdict(list)
    for item in items:  # fixtures of a module may have put others between a test's cases
        if item.get_closest_marker("ci_cases") is not None:
            cases_of[item.nodeid.partition("[")[0]].append(item)
    for cases in cases_of.values():
        (count,) = cases[0].get_closest_marker("ci_cases").args
        kept = {len(cases) * number // count for number in range(count)}
        for index in set(range(len(cases))) - kept:
            cases[index].add_marker("slow")
