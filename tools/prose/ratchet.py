"""Counts of findings in the sources, which may only fall: `limits.tsv` has one for each kind of text."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping

from prose import exceptions, rules, sources
from prose.passages import Finding

LIMITS = pathlib.Path(__file__).with_name("limits.tsv")


def findings(kind: str) -> Iterator[Finding]:
    """Yields all findings in a kind of text that no exception allows."""
    for passage in sources.passages(kind):
        for rule, shown in rules.everywhere(passage.text):
            finding = Finding(passage.path, passage.line, rule, shown)
            if not exceptions.allow(finding):
                yield finding


def limits() -> dict[str, int]:
    """Returns the highest count that each kind may have."""
    rows = [line.split("\t") for line in LIMITS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {kind: int(count) for kind, count in rows}


def write_limits(counts: Mapping[str, int]) -> None:
    """Writes counts as the new limits, if they are lower."""
    lower = {kind: min(count, counts.get(kind, count)) for kind, count in limits().items()}
    rows = "".join(f"{kind}\t{count}\n" for kind, count in lower.items())
    LIMITS.write_text(
        f"# kind of text\tfindings at most; `python -m prose --lower` lowers them\n{rows}", encoding="utf-8"
    )


def judge(counts: Mapping[str, int], allowed: Mapping[str, int]) -> list[str]:
    """Returns a line for each kind that has more findings than allowed.

    Example:
        >>> judge({"messages": 3, "docstrings": 1}, {"messages": 2, "docstrings": 1})
        ["messages: 3 findings, at most 2 are allowed. Rewrite what you added: make prose LIST='messages'"]
    """
    return [
        f"{kind}: {count} findings, at most {allowed[kind]} are allowed. "
        f"Rewrite what you added: make prose LIST={kind!r}"
        for kind, count in counts.items()
        if count > allowed[kind]
    ]
