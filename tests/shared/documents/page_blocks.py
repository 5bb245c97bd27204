"""What pages show: the scripts, and the commands with their output, as a reader copies them."""

from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

from checkout import ROOT

PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").glob("*.md")]
)
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.S | re.M)
_COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n?", re.M)
_SCRIPT_NAME = re.compile(r"`([\w/]+\.py)`")
_TIME = re.compile(r"\d[\d.]* (s|ms|us)\b")
_ROUNDING = re.compile(r"\b(?:\de-0[6-9]|0e\+00)\b")  # differences in the last bits
_WARNING = re.compile(r"^WARNING:tensorflow:.*\n(?:Instructions for updating:\n.*\n)?", re.M)
_CARETS = re.compile(r" *[~^]+ *")  # below a line of a traceback, from Python 3.11 on
# What processes print side by side, each line with its rank: only the order of a rank's own lines is defined.
_RANKS = re.compile(r"(?:^\[1,\d+\]<\w+>:.*\n?)+", re.M)
_PORT = re.compile(r"127\.0\.0\.1:\d+")


class Shown(NamedTuple):
    """A command and what the page shows of its output, which may be nothing."""

    command: str
    output: str


def blocks(page: pathlib.Path, language: str = "") -> list[str]:
    """Returns the code blocks of a page in a language."""
    return [body for name, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def shown(page: pathlib.Path) -> list[Shown]:
    """Returns the commands of all blocks that show an output, in order, those without output among them."""
    found = []
    for block in blocks(page):
        _, *parts = _COMMAND.split(block)
        commands = [Shown(*pair) for pair in zip(parts[::2], parts[1::2])]
        if block.startswith("$ ") and any(one.output.strip() for one in commands):
            found += commands
    return found


def scripts(page: pathlib.Path) -> dict[str, str]:
    """Returns the Python blocks whose paragraph before names a file: contents by name."""
    text, named = page.read_text(encoding="utf-8"), {}
    for block in _BLOCK.finditer(text):
        paragraph = text[: block.start()].rstrip("\n").rpartition("\n\n")[2]
        if block[1] == "python" and _SCRIPT_NAME.search(paragraph) and "```" not in paragraph:
            named[_SCRIPT_NAME.findall(paragraph)[-1]] = block[2]
    return named


def differs(output: str, printed: str) -> str | None:
    """Returns the part of a shown output that was not printed, or None. `...` stands for anything that is left out.

    A line may be wrapped on the page. Times, ports, rounding errors and the order of lines of different ranks differ
    from run to run, and TensorFlow's warnings do not count.

    Example:
        >>> differs("one\\n...\\nin 0.5 s\\n", "one\\ntwo\\nin 1.25 s\\n")
        >>> differs("one\\nthree\\n", "one\\ntwo\\n")
        'one\\nthree'
        >>> differs("[1,0]<stdout>:a\\n[1,1]<stdout>:b\\n", "[1,1]<stdout>:b\\n[1,0]<stdout>:a\\n")
    """
    first, *others = _masked(output).rstrip().split("...")
    parts, rest = [first.rstrip(), *(part.strip() for part in others)], _masked(printed).rstrip()
    for number, part in enumerate(parts):
        pattern = r"\s+".join(re.escape(line.strip()) if number else re.escape(line) for line in part.split("\n"))
        found = re.search((r"\A" if number == 0 else "") + pattern + (r"\Z" if number == len(parts) - 1 else ""), rest)
        if found is None:
            return part
        rest = rest[found.end() :]
    return None


def _masked(text: str) -> str:
    for pattern, instead in ((_WARNING, ""), (_TIME, r"TIME \1"), (_PORT, "HOST:PORT"), (_ROUNDING, "ROUNDING")):
        text = pattern.sub(instead, text)
    lines = _RANKS.sub(_by_rank, text).splitlines()
    return "\n".join(line.rstrip() for line in lines if not _CARETS.fullmatch(line))


def _by_rank(lines: re.Match[str]) -> str:
    return "\n".join(sorted(lines[0].splitlines(), key=lambda line: line.partition("]")[0])) + "\n"
