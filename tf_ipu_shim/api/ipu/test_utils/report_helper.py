"""`tensorflow.python.ipu.test_utils.report_helper`: Poplar's reports, of which there are none here."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.names.refused import refused


def missing_whitelist_entries_in_names(names: Iterable[str], whitelist: Iterable[str]) -> list[str]:
    """The entries of a list that no name begins with.

    Args:
        names: to look through.
        whitelist: beginnings of names; `*` and `?` stand for any text and any letter.

    Source: `tensorflow.python.ipu.test_utils.report_helper.missing_whitelist_entries_in_names`.

    Example:
        >>> missing_whitelist_entries_in_names(["Copy_1", "add.2/Op"], ["Copy_", "host"])
        ['host']
    """
    names = list(names)
    return [entry for entry in whitelist if not fnmatch.filter(names, f"{entry}*")]


class ReportHelper:
    """Refused: finds the files that Poplar's profiler writes.

    Raises:
        UnsupportedError: always.
    """

    @refused(
        "is not emulated: it finds profiles of Poplar, which does not run here. tf_ipu_shim.memory_report() has the "
        "memory and the exchanges of this system."
    )
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Refused."""
