"""`tensorflow.python.ipu.test_utils.test_case_extensions`: assertions on Poplar's reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.names.refused import refused

_ASSERTIONS = (
    "assert_all_compute_sets_and_list assert_always_live_memory assert_compute_io_overlap_percentage "
    "assert_compute_sets_contain_list assert_compute_sets_matches assert_compute_sets_not_in_blacklist "
    "assert_each_tile_memory_is_less_than assert_execution_report_cycles assert_global_exchange_percentage "
    "assert_max_tile_memory assert_num_reports assert_number_of_executions assert_total_tile_memory "
    "assert_vertices_contain_list"
).split()


class TestCaseExtensions:
    """A part of test classes. Its assertions are about compute sets, vertices and cycles, and are refused.

    Source: `tensorflow.python.ipu.test_utils.test_case_extensions.TestCaseExtensions`.

    Example:
        >>> class MyTest(TestCaseExtensions, tf.test.TestCase):
        ...     pass
    """


def _refusing(name: str) -> Callable[..., None]:
    def assertion(self: Any, *args: Any, **kwargs: Any) -> None:
        """Refused; see the class."""

    assertion.__name__ = name
    decorate = refused(
        "is not emulated: it is about the report of a Poplar executable, and there is none here. "
        "tf_ipu_shim.memory_report() has the memory and the exchanges of this system."
    )
    marked: Callable[..., None] = decorate(assertion)
    return marked


for _name in _ASSERTIONS:
    setattr(TestCaseExtensions, _name, _refusing(_name))
