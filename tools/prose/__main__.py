"""Checks the rules for text: no finding in pages, and no more than the limits in the sources.

PYTHONPATH=tools python -m prose  ends with status 1 if a rule is broken:

--list messages  prints the findings of a kind of text
--lower          lowers the limits to the present counts
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from prose import exceptions, pages, ratchet, sources
from prose.passages import Finding


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="prose", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", choices=("pages", *sources.KINDS), help="print the findings of one kind of text")
    parser.add_argument("--rule", help="print findings of this rule only")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the present counts")
    arguments = parser.parse_args()
    if arguments.list:
        _print([one for one in _findings(arguments.list) if arguments.rule in (None, one.rule)])
        return 0
    in_pages = _findings("pages")
    _print(in_pages)
    counts = {kind: len(_findings(kind)) for kind in sources.KINDS}
    if arguments.lower:
        ratchet.write_limits(counts)
    too_many = [*ratchet.judge(counts, ratchet.limits()), *filter(None, [pages.too_many_words()])]
    print(f"pages: {len(in_pages)} findings;", ", ".join(f"{kind}: {count}" for kind, count in counts.items()))
    print("\n".join(too_many), end="\n" if too_many else "")
    return 1 if in_pages or too_many else 0


def _findings(kind: str) -> list[Finding]:
    if kind != "pages":
        return list(ratchet.findings(kind))
    found = (finding for page in (*pages.hand_written(), *pages.generated()) for finding in pages.findings(page))
    return [finding for finding in found if not exceptions.allow(finding)]


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        print(finding)
    if findings:
        print(dict(Counter(finding.rule for finding in findings).most_common()))


if __name__ == "__main__":
    sys.exit(main())
