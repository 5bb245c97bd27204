"""Findings that are allowed, each with its reason: the rows of `exceptions.tsv`."""

from __future__ import annotations

import fnmatch
import functools
import pathlib
from typing import NamedTuple

from prose.passages import ROOT, Finding

TABLE = pathlib.Path(__file__).with_name("exceptions.tsv")


class Allowed(NamedTuple):
    """Findings that an exception allows.

    Args:
        files: a pattern of paths from the root of the sources.
        rule: the rule's name.
        words: the finding shows these; empty for any.
        reason: why the text may stay.
    """

    files: str
    rule: str
    words: str
    reason: str


@functools.cache
def table() -> tuple[Allowed, ...]:
    """Returns all exceptions."""
    rows = TABLE.read_text(encoding="utf-8").splitlines()
    return tuple(Allowed(*row.split("\t")) for row in rows if row and not row.startswith("#"))


def allow(finding: Finding) -> bool:
    """Returns whether an exception allows a finding."""
    path = str(finding.path.relative_to(ROOT))
    return any(
        fnmatch.fnmatch(path, one.files) and one.rule == finding.rule and one.words in finding.shown for one in table()
    )
