"""A test that is marked `ci_cases(n)` leaves cases to `make test-slow`; others leave none."""

import pytest
import slow_cases

pytestmark = pytest.mark.without_tensorflow


class Item:
    """As much of a pytest item as is used."""

    def __init__(self, nodeid, cases=None):
        self.nodeid = nodeid
        self.is_slow = False
        self._mark = cases and pytest.mark.ci_cases(cases).mark

    def get_closest_marker(self, name):
        assert name == "ci_cases"
        return self._mark

    def add_marker(self, name):
        assert name == "slow"
        self.is_slow = True


@pytest.mark.parametrize(
    ("count", "kept", "expected"),
    [(6, 2, [0, 3]), (5, 3, [0, 1, 3]), (4, 1, [0]), (2, 5, [0, 1]), (3, None, [0, 1, 2])],
)
def test_cases_that_stay(count, kept, expected):
    items = [Item(f"test_a.py::test_many[{index}]", kept) for index in range(count)]
    others = [Item(f"test_a.py::test_other[{index}]") for index in range(count)]
    slow_cases.leave_out_cases([item for pair in zip(items, others) for item in pair])
    assert [index for index, item in enumerate(items) if not item.is_slow] == expected
    assert not any(item.is_slow for item in others)
