"""The pages, and the rules that hold for a page as a whole."""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator

from prose import markdown, rules
from prose.passages import ROOT, Finding

FIRST_SCREEN, LONGEST_PAGE, LONGEST_LINE = 25, 2000, 120
MOST_WORDS = 25_000  # of all hand-written pages
_BESIDE_DOCS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
_RECORDS = ("CHANGELOG.md",)  # pages that tell what happened in which release
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_GENERATED = re.compile(r'"(?:[\w/]+/)?(\w+\.md)"')


def hand_written() -> list[pathlib.Path]:
    """Returns all pages but those that a tool named `generate_...` writes."""
    names = _generated_names()
    found = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tutorials").glob("*.md"),
        *_TEMPLATES.glob("*.md"),
        *(ROOT / name for name in _BESIDE_DOCS),
    ]
    return sorted(page for page in found if page.name not in names or page.parent == ROOT)


def generated() -> list[pathlib.Path]:
    """Returns the pages that the tools named `generate_...` write."""
    return sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name in _generated_names())


@functools.cache
def _generated_names() -> frozenset[str]:
    tools = (ROOT / "tools").glob("generate_*.py")
    return frozenset(name for tool in tools for name in _GENERATED.findall(tool.read_text(encoding="utf-8")))


def words(text: str) -> int:
    """Counts the words of a page outside front matter and code.

    Example:
        >>> words("---\\ntype: reference\\n---\\n# Two words\\n\\n| three | `four` |\\n|---|---|\\n```\\ncode\\n```\\n")
        4
    """
    lines = markdown.lines_outside_code(_FRONT_MATTER.sub("", text))
    return sum(any(map(str.isalnum, word)) for _, line in lines for word in line.split())


def too_many_words() -> str:
    """Returns how many words too many all hand-written pages have, or an empty string."""
    count = sum(words(page.read_text(encoding="utf-8")) for page in hand_written())
    if count <= MOST_WORDS:
        return ""
    return f"The hand-written pages have {count} words, at most {MOST_WORDS} are allowed. Cut what is said twice."


def findings(path: pathlib.Path) -> Iterator[Finding]:
    """Yields all findings of a page. A generated page may be long, and has measured figures in its tables."""
    text = path.read_text(encoding="utf-8")
    is_generated = path in generated()
    for passage in markdown.passages(path, text):
        for rule, shown in rules.everywhere(passage.text):
            yield Finding(path, passage.line, rule, shown)
        if path.name not in _RECORDS:
            for rule, shown in rules.in_pages(passage.text):
                if not is_generated or rule != "figure-in-prose":
                    yield Finding(path, passage.line, rule, shown)
    if not is_generated and path.parent != _TEMPLATES:
        yield from _of_the_page(path, text)


def _of_the_page(path: pathlib.Path, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    has_code = any(line.lstrip().startswith("```") for line in lines[:FIRST_SCREEN])
    has_table = "\n|" in text.partition("\n## ")[0]
    if not has_code and not has_table and path.parent != ROOT:
        yield Finding(path, 1, "first-screen", f"no command, example or table in {FIRST_SCREEN} lines")
    if len(text.split()) > LONGEST_PAGE and path.name not in _RECORDS:
        yield Finding(path, 1, "page-over-2000", f"{len(text.split())} words")
    for number, line in markdown.lines_outside_code(text):
        if len(line) > LONGEST_LINE and not line.lstrip().startswith("|") and " " in line.strip():
            yield Finding(path, number, "line-over-120", f"{len(line)} characters")
