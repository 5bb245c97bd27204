"""The command line of the tools that write a page of `docs`."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable


def write_or_check(path: pathlib.Path, page: Callable[[], str], about: str | None, target: str) -> int:
    """Writes a page, or with `--check` says whether it is up to date; returns the exit status.

    Args:
        path: of the page.
        page: makes its whole text.
        about: the tool's docstring, whose first line is its help.
        target: of `make`, which writes the page.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only tell whether the page is up to date")
    check = parser.parse_args().check
    text = page()
    if check:
        current = path.exists() and path.read_text() == text
        print(f"docs/{path.name} is {'up to date' if current else f'out of date: run make {target}'}")
        return 0 if current else 1
    path.write_text(text)
    return 0
