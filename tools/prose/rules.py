"""The style guide's rules that a program can check, each a function from a text to the words that break it."""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

LONG, TOO_LONG = 25, 35  # words of a sentence
_HEADLESS = re.compile(r"^\W*(What|Whatever|Whoever|Who|Nobody|Somebody)\s+[a-z]")
_NEGATIONS = re.compile(
    r"\b[Nn]othing\b[^.]*\b(nothing|no|not|without|never)\b|\b(is|are) no [a-z]+\b[^.]*\b(no|not|nothing)\b"
)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_RECORD = re.compile(
    rf"\bUTC\b|\b\d{{1,2}}:\d{{2}}\b(?!:)|\b\d{{1,2}} ({_MONTH})\b|\b20\d\d-\d\d-\d\d\b"
    r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,8}\b|\bwith a load\b|\bload \d"
)
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*( to \d[\d,.]*)? (ms|us|s|seconds|minutes|GB|MB|%|per cent)(?!\w)")
_PAGE_AS_CODE = re.compile(r"`docs/[a-z_/]+\.md`")
_CODE = re.compile(r"``[^`]+``|`[^`]+`")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")


class Term(NamedTuple):
    """A word that the guide bans, and its replacement."""

    pattern: re.Pattern[str]
    instead: str


@functools.cache
def terms() -> tuple[Term, ...]:
    """Returns the banned words: the rows of `terms.tsv`."""
    table = pathlib.Path(__file__).with_name("terms.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in table.splitlines() if line and not line.startswith("#")]
    return tuple(Term(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rows)


def everywhere(text: str) -> Iterator[tuple[str, str]]:
    """Yields the rules that any passage breaks: (rule, words).

    Example:
        >>> list(everywhere("Whoever asks gets an error."))
        [('term', 'Whoever: write the caller / anyone who'), ('headless-subject', 'Whoever asks gets an error.')]
    """
    words = _LINK_TARGET.sub("]", _CODE.sub("`code`", text))
    for term in terms():
        for found in term.pattern.finditer(words):
            yield "term", f"{found.group()}: write {term.instead}"
    for sentence in sentences(text):
        count = len(sentence.split())
        if count > LONG:
            yield "sentence-over-35" if count > TOO_LONG else "sentence-over-25", f"{count} words: {sentence[:60]}"
        if _HEADLESS.match(sentence):
            yield "headless-subject", sentence[:70]
        if _NEGATIONS.search(sentence):
            yield "double-negative", sentence[:70]
        if _CODE.sub("", sentence).count(";") > 1:
            yield "semicolons", sentence[:70]


def in_pages(text: str) -> Iterator[tuple[str, str]]:
    """Yields the rules that only a page can break: records of work, measured figures, pages named as code."""
    for rule, pattern in (("record-of-work", _RECORD), ("figure-in-prose", _FIGURE), ("link-not-code", _PAGE_AS_CODE)):
        found = pattern.search(text)
        if found:
            yield rule, found.group()


def sentences(text: str) -> list[str]:
    """Splits a text after each full stop that a capital, code or a link follows.

    Example:
        >>> sentences("One. Two of 2.15.1! `three`.")
        ['One.', 'Two of 2.15.1!', '`three`.']
    """
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[{])", text)
