"""Shows a command's text on a terminal: verdicts in colour, tables cut to its width.

Files and pipes get the text unchanged. `NO_COLOR` turns the colours off (no-color.org).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

_RED, _YELLOW, _GREEN = 31, 33, 32
_VERDICTS = (
    (re.compile(r"^(not supported: \d+|\[PROBLEM\])|\b(does NOT fit[\w ]*|TOO FULL|no: IPU [\d, ]*\d)"), _RED),
    (re.compile(r"^(no effect: \d+|look at: \d+|\[note\])|\btoo few IPUs\b"), _YELLOW),
    (re.compile(r"^(emulated: \d+|\[ok\])|(?<=[;:] )(all fit|fits|it fits now)\b|(?<=  )yes(?=  )"), _GREEN),
)
_ROW = re.compile(r"\S {2,}\S")


def show(text: str, hint: str = "") -> None:
    """Prints a text.

    Args:
        hint: a sentence that names another way to show rows that are too wide for the terminal.

    Example:
        >>> show("emulated: 3")
        emulated: 3
    """
    if sys.stdout.isatty():
        text = fitted(text, shutil.get_terminal_size().columns, hint)
        text = "\n".join(map(coloured, text.split("\n"))) if uses_colour() else text
    print(text)


def uses_colour() -> bool:
    """Returns whether the output shows colours, and they are not turned off."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(line: str) -> str:
    """Returns a line with its verdicts in colour.

    Example:
        >>> coloured("not supported: 2")
        '\\x1b[31mnot supported: 2\\x1b[0m'
    """
    for pattern, colour in _VERDICTS:
        line = pattern.sub(lambda match, colour=colour: f"\x1b[{colour}m{match[0]}\x1b[0m", line)  # type: ignore[misc]
    return line


def fitted(text: str, columns: int, hint: str = "") -> str:
    """Returns the text with wrapped sentences and tables cut to a width; a note says so.

    Example:
        >>> print(fitted("a  b  c\\nnot a row", 6))
        a  b …
        not a
        row
        Rows are cut to 6
        columns; in a file
        or a pipe they are
        whole.
    """
    lines: list[str] = []
    is_cut = False
    for line in text.split("\n"):
        if len(line) <= columns:
            lines.append(line)
        elif _ROW.search(line):
            lines.append(f"{line[: columns - 1]}…")
            is_cut = True
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            lines += textwrap.wrap(line, columns, subsequent_indent=indent, break_long_words=False)
    if is_cut:
        note = f"Rows are cut to {columns} columns; in a file or a pipe they are whole.{hint and f' {hint}'}"
        lines += textwrap.wrap(note, max(columns, 20))
    return "\n".join(lines)
