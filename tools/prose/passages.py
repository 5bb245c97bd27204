"""A passage: a piece of text that the rules read, with its place."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Passage(NamedTuple):
    """A paragraph, list item, table cell or message.

    Args:
        path: the file.
        line: where the passage begins, from 1.
        text: the text in one line.
    """

    path: pathlib.Path
    line: int
    text: str


class Finding(NamedTuple):
    """A passage that breaks a rule.

    Args:
        path: the file.
        line: where the passage begins, from 1.
        rule: the rule's name.
        shown: the words that break it.
    """

    path: pathlib.Path
    line: int
    rule: str
    shown: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.rule}: {self.shown}"
