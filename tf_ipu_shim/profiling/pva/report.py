"""Implements the top-level object that `pva.openReport` returns."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.errors import UnsupportedError
from tf_ipu_shim.profiling.page import render_page
from tf_ipu_shim.profiling.profile import Profile, parse_facts
from tf_ipu_shim.profiling.pva.compilation import Compilation
from tf_ipu_shim.profiling.pva.execution import Execution
from tf_ipu_shim.profiling.pva.refusing import Refusing
from tf_ipu_shim.profiling.reader import Run
from tf_ipu_shim.profiling.writer import FORMAT_VERSION


class PoplarVersion(NamedTuple):
    """The SDK that was emulated: no Poplar has compiled the program."""

    string: str
    major: int
    minor: int
    point: int
    packageHash: str


class FormatVersion(NamedTuple):
    """The version of the file's format, which is this package's own."""

    major: int
    minor: int
    point: int
    isUnstableFormat: bool


class Report(Refusing):
    """The profile of one program.

    Args:
        profile: the report file.
        runs: the runs of the program; None if they were not counted.

    Attributes:
        compilation: its components, and its memory.
        facts: other contents of its profile; not in Graphcore's library.
    """

    refused = {"instrumentationSettings": "nothing is instrumented: cycles are computed"}

    def __init__(self, profile: Profile, runs: Sequence[Run] | None) -> None:
        self.facts = parse_facts(profile)
        self.compilation = Compilation(profile, self.facts)
        self._profile, self._runs = profile, runs

    def _repr_html_(self) -> str:
        """Returns the notebook display: the page of the profile in a frame."""
        page = html.escape(render_page(self._profile, None if self._runs is None else list(self._runs)))
        return f'<iframe srcdoc="{page}" title="profile" style="width:100%;height:720px;border:0"></iframe>'

    @functools.cached_property
    def execution(self) -> Execution:
        """Its runs."""
        if self._runs is None:
            raise UnsupportedError(
                "This profile has no execution report, which this attribute needs. Set the engine option "
                '"autoReport.outputExecutionProfile" to "true" before the programs run.'
            )
        return Execution(self.compilation, self._profile.programs, self._runs, self.facts)

    @property
    def poplarVersion(self) -> PoplarVersion:
        """The SDK that was emulated."""
        major, minor = map(int, str(self.facts["sdk"]).split("."))
        return PoplarVersion(f"{major}.{minor}.0 (tf_ipu_shim)", major, minor, 0, "")

    @property
    def version(self) -> FormatVersion:
        """The version of the file's format."""
        return FormatVersion(FORMAT_VERSION, 0, 0, True)

    @property
    def categories(self) -> list[Mapping[str, int]]:
        """Bytes by category at the largest step of each IPU; not in Graphcore's library."""
        return [json.loads(row.categories) for row in self._profile.ipus]
