"""The command line of the tools that write pages of `docs`."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_or_check(path: pathlib.Path, page: Callable[[], str], about: str | None, target: str) -> int:
    """Writes a page, or with `--check` says whether it is up to date; returns the exit status.

    Args:
        path: the path of the page.
        page: makes its whole text.
        about: the tool's docstring, whose first line is its help.
        target: the target of `make`, which writes the page.
    """
    return write_or_check_all({path: page}, about, target)


def write_or_check_all(pages: Mapping[pathlib.Path, Callable[[], str]], about: str | None, target: str) -> int:
    """Writes several pages, or with `--check` says of each whether it is up to date; returns the exit status."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only tell whether the pages are up to date")
    check = parser.parse_args().check
    status = 0
    for path, page in pages.items():
        text = page()
        if not check:
            path.write_text(text)
            continue
        current = path.exists() and path.read_text() == text
        print(f"{path.relative_to(ROOT)} is {'up to date' if current else f'out of date: run make {target}'}")
        status = status if current else 1
    return status
