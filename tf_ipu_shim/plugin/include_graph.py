"""Finds the headers that C++ sources can include, in any branch of `#if`, without running a compiler."""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Sequence

_INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class IncludeGraph:
    """The files below `folders` that sources include, directly or through other headers; system headers are left out.

    Args:
        folders: the compiler's search path for headers.
    """

    def __init__(self, folders: Sequence[pathlib.Path]) -> None:
        self._folders = folders
        self._files: dict[pathlib.Path, tuple[int, list[pathlib.Path]]] = {}

    def headers_of(self, source: pathlib.Path) -> frozenset[pathlib.Path]:
        """Returns the headers that `source` includes."""
        found: set[pathlib.Path] = set()
        waiting = [source]
        while waiting:
            for header in self._read(waiting.pop())[1]:
                if header not in found:
                    found.add(header)
                    waiting.append(header)
        return frozenset(found)

    def size_of(self, file: pathlib.Path) -> int:
        """Returns the bytes of a source or header."""
        return self._read(file)[0]

    def _read(self, file: pathlib.Path) -> tuple[int, list[pathlib.Path]]:
        if file not in self._files:
            text = file.read_bytes()
            named = {name.decode(errors="replace") for name in _INCLUDE.findall(text)}
            headers = [header for name in sorted(named) if (header := self._find(file.parent, name))]
            self._files[file] = len(text), headers
        return self._files[file]

    @functools.cache  # noqa: B019  one graph a build
    def _find(self, beside: pathlib.Path, name: str) -> pathlib.Path | None:
        return next((path for folder in (beside, *self._folders) if (path := folder / name).is_file()), None)
