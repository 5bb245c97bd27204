"""The hand-written pages, and the rules that hold for a page as a whole."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from prose import markdown, rules
from prose.passages import ROOT, Finding

FIRST_SCREEN, LONGEST_PAGE, LONGEST_LINE = 25, 2000, 120
_BESIDE_DOCS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_RECORDS = ("CHANGELOG.md",)  # pages that tell what happened in which release
_GENERATED = re.compile(r'"(?:[\w/]+/)?(\w+\.md)"')


def hand_written() -> list[pathlib.Path]:
    """Returns all pages but those that a tool named `generate_...` writes."""
    generated = {
        name
        for tool in (ROOT / "tools").glob("generate_*.py")
        for name in _GENERATED.findall(tool.read_text(encoding="utf-8"))
    }
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tutorials").glob("*.md"),
        *(ROOT / name for name in _BESIDE_DOCS),
    ]
    return sorted(page for page in pages if page.name not in generated or page.parent == ROOT)


def findings(path: pathlib.Path) -> Iterator[Finding]:
    """Yields all findings of a page."""
    text = path.read_text(encoding="utf-8")
    for passage in markdown.passages(path, text):
        for rule, shown in rules.everywhere(passage.text):
            yield Finding(path, passage.line, rule, shown)
        if path.name not in _RECORDS:
            for rule, shown in rules.in_pages(passage.text):
                yield Finding(path, passage.line, rule, shown)
    yield from _of_the_page(path, text)


def _of_the_page(path: pathlib.Path, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    if not any(line.lstrip().startswith(("```", "|")) for line in lines[:FIRST_SCREEN]) and path.parent != ROOT:
        yield Finding(path, 1, "first-screen", f"no command, example or table in {FIRST_SCREEN} lines")
    if len(text.split()) > LONGEST_PAGE and path.name not in _RECORDS:
        yield Finding(path, 1, "page-over-2000", f"{len(text.split())} words")
    for number, line in markdown.lines_outside_code(text):
        if len(line) > LONGEST_LINE and not line.lstrip().startswith("|") and " " in line.strip():
            yield Finding(path, number, "line-over-120", f"{len(line)} characters")
