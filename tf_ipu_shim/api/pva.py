"""`pva`: reads the profiles that programs write here, with the interface of Graphcore's PopVision library.

Its object model, as scripts use it; the figures are the cycle model's (`docs/explanation/machine_model.md`). Attributes
that these profiles do not have raise an error. Files of Poplar's own profiler are not read.
"""

from __future__ import annotations

import os
from typing import Any

from tf_ipu_shim.errors import MissingAttributeError
from tf_ipu_shim.names.not_supported_marker import not_supported
from tf_ipu_shim.profiling import reader
from tf_ipu_shim.profiling.pva.program import Program, ProgramVisitor
from tf_ipu_shim.profiling.pva.report import Report
from tf_ipu_shim.profiling.pva.target import IPU, Target

_NO_TRACES = (
    "it reads traces of PopVision's System Analyser (.pvti), which nothing writes here. Spans of `libpvti` are in "
    "TensorFlow's profiler: tf.profiler.experimental.start(directory), then the trace.json.gz in it."
)
_REFUSED = dict.fromkeys(("openTrace", "Trace", "Process", "Thread", "Event"), _NO_TRACES)

__all__ = ["IPU", "OperationAnalysis", "Program", "ProgramVisitor", "Report", "Target", "openReport"]


def __getattr__(name: str) -> Any:
    """Raises an error for names that only Graphcore's library has."""
    if name in _REFUSED:
        raise MissingAttributeError(f"pva.{name} is not emulated: {_REFUSED[name]}. Use another attribute.")
    raise AttributeError(f"module 'pva' has no attribute {name!r}")


def openReport(path: str | os.PathLike[str], debug_path: str | os.PathLike[str] | None = None) -> Report:
    """Opens the profile of a program.

    Args:
        path: `profile.pop` in the folder of a program.
        debug_path: not needed: the user's lines are in the profile.

    Returns:
        The report.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is not a profile that this package wrote.

    Source: `pva.openReport`.

    Example:
        >>> openReport("reports/train/profile.pop")  # what it gives is in docs/reference/profile_format.md
        Traceback (most recent call last):
        FileNotFoundError: There is no profile 'reports/train/profile.pop'...
    """
    return Report(reader.read_profile(os.fspath(path)), reader.read_runs(os.fspath(path)))


class OperationAnalysis:
    """Refused: libpva derives it from the debug information of Poplar's compiler."""

    @not_supported(
        "is not emulated: it reads debug information of Poplar's compiler, which does not run here. "
        "report.compilation.programs and report.compilation.computeSets have the names of TensorFlow's ops."
    )
    def __init__(self, report: Report) -> None:
        """Refused."""
