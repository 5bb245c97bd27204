"""`tensorflow.python.ipu.test_utils.test_case_extensions`: test assertions on profiles opened with `pva`."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.profiling.pva.program import Program
from tf_ipu_shim.tf_private.utilities import test_util

_COMMON = ("*__seed*", "*host-exchange-*", "*[cC]opy_*")
"""Compute sets that any program may have."""


class TestCaseExtensions:
    """Assertions on compute sets, memory and cycles of a profile, which every `tf.test.TestCase` has.

    Other test classes derive from it. Figures are the cycle model's (`docs/explanation/machine_model.md`): a bound that
    was measured on hardware may not hold here.

    Source: `tensorflow.python.ipu.test_utils.test_case_extensions.TestCaseExtensions`.

    Example:
        >>> hasattr(tf.test.TestCase, "assert_num_reports")
        True
    """

    def assert_num_reports(self, report_helper: Any, n: int) -> None:
        """Asserts the number of profiles that a helper finds."""
        _assert_equal(self, len(report_helper.find_reports()), n)

    def assert_number_of_executions(self, report: Any, n: int) -> None:
        """Asserts how often the program ran."""
        _assert_equal(self, len(report.execution.runs), n)

    def assert_execution_report_cycles(
        self, report: Any, expected: float, tolerance: float = 0.01, expected_executions: int = 1
    ) -> None:
        """Asserts a program's number of runs and total cycles.

        Args:
            report: the report of the program.
            expected: cycles.
            tolerance: part of them by which it may differ.
            expected_executions: runs.
        """
        self.assert_number_of_executions(report, expected_executions)
        _assert_near(self, report.execution.totalCycles.total, expected, tolerance)

    def assert_total_tile_memory(self, report: Any, expected: float, tolerance: float = 0.01) -> None:
        """Asserts the bytes of all tiles together; `tolerance` is a part of them."""
        _assert_near(self, sum(_tile_bytes(report)), expected, tolerance)

    def assert_max_tile_memory(self, report: Any, expected: float, tolerance: float = 0.01) -> None:
        """Asserts the bytes of the fullest tile; `tolerance` is a part of them."""
        _assert_near(self, max(_tile_bytes(report)), expected, tolerance)

    def assert_each_tile_memory_is_less_than(self, report: Any, max_expected: float, tolerance: float = 0.01) -> None:
        """Asserts that no tile needs more bytes; `tolerance` is a part of them."""
        _assert(self, max(_tile_bytes(report)) <= max_expected * (1 + tolerance), f"max {max(_tile_bytes(report))}")

    def assert_always_live_memory(self, report: Any, expected: float, tolerance: float = 0.01) -> None:
        """Asserts the number of always-live bytes; `tolerance` is a fraction of it."""
        always = sum(tile.memory.alwaysLiveBytes for tile in report.compilation.tiles)
        _assert_near(self, always, expected, tolerance)

    def assert_all_compute_sets_and_list(self, report: Any, ok: Iterable[str], ignore_common: bool = True) -> None:
        """Asserts that every compute set has an entry of the list in its name, and vice versa.

        Args:
            report: the report of the program.
            ok: parts of names, with `*` and `?`.
            ignore_common: whether entries that any program may have are left out.
        """
        names, entries = _compute_sets(report), list(ok)
        allowed = [*entries, *(_COMMON if ignore_common else ())]
        unlisted = [name for name in names if not _any(name, allowed)]
        _assert(self, not unlisted, f"compute sets that are not in the list: {unlisted}")
        self.assert_compute_sets_contain_list(report, entries)

    def assert_compute_sets_contain_list(self, report: Any, ok: Iterable[str]) -> None:
        """Asserts that every entry of the list is in the name of a compute set."""
        names = _compute_sets(report)
        missing = [entry for entry in ok if not fnmatch.filter(names, f"*{entry}*")]
        _assert(self, not missing, f"no compute sets for {missing}; there are {names}")

    def assert_compute_sets_not_in_blacklist(self, report: Any, blacklist: Iterable[str]) -> None:
        """Asserts that no compute set has an entry of the list in its name."""
        blacklisted = [name for name in _compute_sets(report) if _any(name, list(blacklist))]
        _assert(self, not blacklisted, f"compute sets that must not be there: {blacklisted}")

    def assert_compute_sets_matches(self, report: Any, expr: str, num_matches: int, msg: str | None = None) -> None:
        """Asserts the number of compute sets whose name matches; `*` matches any text and `?` any letter."""
        matches = fnmatch.filter(_compute_sets(report), expr)
        _assert(self, len(matches) == num_matches, msg or f"{len(matches)} compute sets match {expr!r}: {matches}")

    def assert_vertices_contain_list(self, report: Any, ok: Iterable[str]) -> None:
        """Asserts that every entry of the list is in the type of some vertices."""
        types = {vertex.type.name for compute_set in report.compilation.computeSets for vertex in compute_set.vertices}
        missing = [entry for entry in ok if not fnmatch.filter(types, f"*{entry}*")]
        _assert(self, not missing, f"no vertices for {missing}; there are {sorted(types)}")

    def assert_global_exchange_percentage(self, report: Any, p: float) -> None:
        """Asserts an upper limit, 0 to 100 %, for the share of exchanges between IPUs in a run's cycles."""
        steps = list(report.execution.steps)
        moved = sum(_cycles(step) for step in steps if step.program.type is Program.Type.GlobalExchange)
        total = sum(map(_cycles, steps))
        _assert(self, 100 * moved <= p * total, f"{moved} of {total} cycles")

    def assert_compute_io_overlap_percentage(self, report: Any, p: float) -> None:
        """Asserts a minimum share, 0 to 1, of compute, or of host copies, that overlaps with the other.

        This is the case if `IPUConfig.io_tiles` assigns feeds their own tiles. The first IPU's first run is checked.
        """
        compute, copies = _Intervals(), _Intervals()
        for step in report.execution.runs[0].steps:
            intervals = {Program.Type.OnTileExecute: compute, Program.Type.StreamCopyMid: copies}.get(step.program.type)
            if intervals is not None:
                active = step.ipus[0].activeCycles
                intervals.add(active.cyclesFrom.max, active.cyclesTo.max)
        overlap, shorter = compute.beside(copies), min(compute.total, copies.total)
        part = overlap / shorter if shorter else 0.0
        _assert(self, part > p, f"{part} not greater than {p}")


class _Intervals:
    """Durations from one cycle to another; several may overlap."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, int]] = []
        self.total = 0

    def add(self, begin: int, end: int) -> None:
        self._changes += [(begin, 1), (end, -1)]
        self.total += end - begin

    def beside(self, intervals: _Intervals) -> int:
        """Cycles that both have, each pair of intervals for itself."""
        changes = [(at, change, 0) for at, change in self._changes] + [
            (at, 0, other_change) for at, other_change in intervals._changes
        ]
        overlap = before = own_index = other_index = 0
        for at, change, other_change in sorted(changes):
            overlap += (at - before) * own_index * other_index
            before, own_index, other_index = at, own_index + change, other_index + other_change
        return overlap


def _compute_sets(report: Any) -> list[str]:
    return [compute_set.name for compute_set in report.compilation.computeSets]


def _any(name: str, entries: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, f"*{entry}*") for entry in entries)


def _tile_bytes(report: Any) -> list[int]:
    return [tile.memory.total.excludingGaps for tile in report.compilation.tiles]


def _cycles(step: Any) -> int:
    return max(ipu.cycles for ipu in step.ipus)


def _assert(test: Any, condition: bool, message: str) -> None:
    test.assertTrue(condition, message)


def _assert_equal(test: Any, actual: int, expected: int) -> None:
    test.assertEqual(expected, actual)


def _assert_near(test: Any, actual: float, expected: float, tolerance: float) -> None:
    _assert(test, abs(actual - expected) <= abs(expected) * tolerance, f"{actual} is not {expected} +-{tolerance:.0%}")


for _name in [name for name in vars(TestCaseExtensions) if name.startswith("assert_")]:
    patches.replace(
        test_util.TensorFlowTestCase,
        _name,
        functools.partial(lambda added, _: added, vars(TestCaseExtensions)[_name]),
        why="tests that import `ipu.test_utils` have its assertions without naming their class",
    )
