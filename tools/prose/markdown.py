"""Splits Markdown into passages: paragraphs, list items and table cells, without code blocks and headings."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from prose.passages import Passage

_ITEM = re.compile(r"^\s*([-*]|\d+\.) ")


def passages(path: pathlib.Path, text: str, first_line: int = 1) -> Iterator[Passage]:
    """Yields the passages of a text, in order.

    Example:
        >>> [passage.text for passage in passages(pathlib.Path("x.md"), "# Title\\n\\n- one\\n- two\\n  words")]
        ['one', 'two words']
    """
    begins, gathered = first_line, list[str]()
    for number, line in lines_outside_code(text, first_line):
        is_row = line.startswith("|")
        if gathered and (is_row or not line.strip() or line.startswith("#") or _ITEM.match(line)):
            yield Passage(path, begins, " ".join(gathered))
            gathered = []
        if is_row:
            yield from (Passage(path, number, cell) for cell in _cells(line))
        elif line.strip() and not line.startswith("#"):
            begins = begins if gathered else number
            gathered.append(_ITEM.sub("", line, count=1).strip())
    if gathered:
        yield Passage(path, begins, " ".join(gathered))


def lines_outside_code(text: str, first_line: int = 1) -> Iterator[tuple[int, str]]:
    """Numbered lines; those of code blocks, fences included, are empty."""
    in_code = False
    for number, line in enumerate(text.splitlines(), first_line):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        yield number, "" if in_code or is_fence else line


def _cells(row: str) -> Iterator[str]:
    for cell in re.split(r"(?<!\\)\|", row.strip().strip("|")):
        if not set(cell.strip()) <= set("-: "):
            yield cell.strip()
