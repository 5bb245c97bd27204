"""Writes the pages that readers look things up in, errors and the glossary, from `docs/data`.

python tools/generate_lookup.py          writes the pages
python tools/generate_lookup.py --check  ends with status 1 if a page is out of date
"""

from __future__ import annotations

import csv
import itertools
import pathlib
import sys
import textwrap
from collections.abc import Iterator

import generated_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "data"
WIDTH = 120
Row = dict[str, str]

ERRORS = """---
type: reference
tags: [error, exception, message, not supported, traceback]
---

# Errors

Find an error by the first words of its message. Each entry names the cause and the fix.

```
$ tf-ipu doctor     # checks the installation
$ tf-ipu env        # lists environment variables, flags and options, and checks them
```

The message comes last, after the lines of your script ([Read logs and
tracebacks](../how_to/run/logs_and_tracebacks.md)). If Graphcore documents an error, ours has the same class and first
words. [All errors](all_errors.md) lists every message.
"""
GLOSSARY = """---
type: reference
tags: [terms, definitions]
---

# Glossary

These terms are used in all pages, messages and reports. TensorFlow's and Graphcore's terms keep their meaning.

| term | meaning |
|---|---|
"""


def rows(name: str) -> list[Row]:
    """Returns the rows of a data file."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def errors() -> str:
    """Returns the page of errors: a section for each area, and in it an entry for each phrase."""
    areas = itertools.groupby(rows("errors.csv"), key=lambda row: row["section"])
    return ERRORS + "".join(f"\n## {area}\n{''.join(map(_entry, found))}" for area, found in areas)


def _entry(row: Row) -> str:
    return f"\n### `{row['phrase']}`\n\n{_wrapped('Cause', row['cause'])}\n\n{_wrapped('Fix', row['fix'])}\n"


def _wrapped(part: str, text: str) -> str:
    return textwrap.fill(f"{part}: {text}", WIDTH, break_long_words=False, break_on_hyphens=False)


def glossary() -> str:
    """Returns the page of terms, in alphabetical order."""
    return GLOSSARY + "".join(_term_rows())


def _term_rows() -> Iterator[str]:
    for row in sorted(rows("glossary.csv"), key=lambda row: row["term"].lower()):
        yield f"| {row['term']} | {row['meaning']} |\n"


PAGES = {ROOT / "docs/reference/errors.md": errors, ROOT / "docs/reference/glossary.md": glossary}


if __name__ == "__main__":
    sys.exit(generated_page.write_or_check_all(PAGES, __doc__, "lookup"))
