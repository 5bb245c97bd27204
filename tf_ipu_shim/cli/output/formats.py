"""Declares `--format`, and formats results of commands as JSON or as annotations of GitHub Actions."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

TEXT, JSON, GITHUB = "text", "json", "github"


def add_argument(parser: argparse.ArgumentParser, *more: str) -> None:
    """Declares `--format`."""
    parser.add_argument(
        "--format",
        choices=(TEXT, JSON, *more),
        default=TEXT,
        metavar="FORMAT",
        help="print text (default), json or github, which are annotations for GitHub Actions"
        if GITHUB in more
        else "print text (default) or json",
    )


def to_json(value: Any) -> str:
    """Records as JSON: named tuples and dataclasses become objects.

    Example:
        >>> to_json({"sizes": (1, 2)})
        '{\\n  "sizes": [\\n    1,\\n    2\\n  ]\\n}'
    """
    return json.dumps(_plain(value), indent=2, default=str)


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple, set, frozenset)) else value


def annotation(level: str, title: str, message: str, file: str = "", line: int = 0) -> str:
    """Returns a line that GitHub Actions shows at a place of a file.

    Args:
        level: error, warning or notice.

    Example:
        >>> annotation("error", "IPU", "no such name", "a.py", 3)
        '::error file=a.py,line=3,title=IPU::no such name'
    """
    properties = [f"file={_property(file)}"] if file else []
    properties += [f"line={line}"] if file and line else []
    return f"::{level} {','.join([*properties, f'title={_property(title)}'])}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


@contextlib.contextmanager
def script_output(chosen: str) -> Iterator[None]:
    """Redirects a script's output to stderr unless the format is text, so that stdout has only the result."""
    if chosen == TEXT:
        yield
        return
    sys.stdout.flush()
    shown = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(shown, 1)
        os.close(shown)
