"""Writes the page of published facts, from `validation/facts.csv`.

python tools/generate_facts.py          writes the page
python tools/generate_facts.py --check  ends with status 1 if the page is out of date
"""

from __future__ import annotations

import csv
import itertools
import pathlib
import sys
from collections.abc import Iterator, Sequence

import generated_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "reference" / "facts.md", ROOT / "validation" / "facts.csv"
Row = dict[str, str]

FIRST = """---
type: reference
tags: [hardware, chip, gc200, bow]
---

# Facts

This page lists what is published about the real hardware and software: the figures that the models rest on, and the
behaviour that is emulated. Each fact has its source. This project measured none of them. Computed and assumed figures
say so. Code that rests on a fact names its section, as in `docs/reference/facts.md, section "Chips"`.

| source | meaning |
|---|---|
"""
SOURCES = {
    "datasheets": "those of the C600, the M2000, the Bow-2000 and the Pods",
    "tools": 'Graphcore\'s "Command line tools": `gc-info`, `gc-monitor`, `gc-hosttraffictest`',
    "TensorFlow docs, `config.py`": "the documentation, and the module with its docstrings, of graphcore/tensorflow on "
    "GitHub: branch `r2.6/sdk-release-3.4`, or `r1.15` and `r2.1` for older SDKs",
    "driver": "the C++ code under `tensorflow/compiler/plugin/poplar/driver` there. Its behaviour is stated here; no "
    "code was copied",
    "PopLibs": "graphcore/poplibs on GitHub",
}


def page() -> str:
    """Returns the text of the page."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sections = itertools.groupby(rows, key=lambda row: row["section"])
    sources = "".join(f"| {name} | {meaning} |\n" for name, meaning in SOURCES.items())
    return FIRST + sources + "".join("\n".join(_section(name, list(facts))) + "\n" for name, facts in sections)


def _section(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yields the lines of a section: a table, without the column of values if no row has one.

    A source that all rows share stands above the table; one that a row shares with the row before is "the same".
    """
    yield from ("", f"## {name}", "")
    columns = ["fact"]
    if any(row["value"] for row in rows):
        columns.append("value")
    if len({row["source"] for row in rows}) == 1:
        yield from (f"Source: {rows[0]['source']}.", "")
    else:
        columns.append("source")
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    before = None
    for row in rows:
        shown = {**row, "source": "the same"} if row["source"] == before else row
        yield f"| {' | '.join(shown[column] for column in columns)} |"
        before = row["source"]


if __name__ == "__main__":
    sys.exit(generated_page.write_or_check(PAGE, page, __doc__, "facts"))
