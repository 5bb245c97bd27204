"""Cases of a test that are left to `make test-slow`: another of the same test says as much of what usually breaks."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def slowly(*case: Any) -> Any:
    """A case that `make test-slow` runs."""
    return pytest.param(*case, marks=pytest.mark.slow)


def leave_out_cases(items: Iterable[pytest.Item]) -> None:
    """Marks as slow all but N cases of each test that is marked `ci_cases(N)`; these N are spread over all."""
    for _, group in itertools.groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        mark = cases[0].get_closest_marker("ci_cases")
        if mark is not None:
            kept = {len(cases) * number // mark.args[0] for number in range(mark.args[0])}
            for index in set(range(len(cases))) - kept:
                cases[index].add_marker("slow")
