"""Reads the tables of options in the C++ sources of the Poplar libraries: arrays of `poplar::detail::Option`."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re

SOURCES = pathlib.Path(__file__).resolve().parent / "csrc"
KINDS = ("Integer", "Decimal", "Fraction", "Text")
"""Words for any value of that kind."""
_REASON = re.compile(r'constexpr const char\s*\*\s*(\w+)\s*=\s*((?:"[^"]*"\s*)+);')
_TABLE = re.compile(r"((?://[^\n]*\n)+)[^\n;]*\bOption (\w+)\[\] = \{\n(.*?)\n\};", re.DOTALL)
_TEXT = r'(?:"[^"]*"\s*)+'
_ROW = re.compile(rf"\{{({_TEXT}),\s*({_TEXT}),\s*({_TEXT}|\w+)\}}")


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a table; `without_effect` says why it has no effect, and is None if it has one."""

    name: str
    values: tuple[str, ...]
    without_effect: str | None


def _joined(text: str) -> str:
    return "".join(re.findall(r'"([^"]*)"', text))


def _rows(body: str, reasons: dict[str, str]) -> list[Option]:
    found = []
    for name, values, reason in _ROW.findall(body):
        why = None if reason == "nullptr" else _joined(reason) or reasons[reason]
        found.append(Option(_joined(name), tuple(_joined(values).split(", ")), why))
    return found


def read_with_titles() -> dict[str, tuple[str, list[Option]]]:
    """Returns the tables by name, each with the comment above it: the functions that accept the options."""
    texts = [path.read_text() for path in sorted(SOURCES.rglob("*option*.[ch]*"))]
    reasons = {name: _joined(text) for content in texts for name, text in _REASON.findall(content)}
    return {
        name: (" ".join(line.lstrip("/ ") for line in comment.splitlines()), _rows(body, reasons))
        for content in texts
        for comment, name, body in _TABLE.findall(content)
    }


@functools.cache
def read() -> dict[str, list[Option]]:
    """Returns the options of each table by the table's name."""
    return {name: rows for name, (_, rows) in read_with_titles().items()}
