"""Reads `graphcore_names.txt`: every public name of Graphcore's TensorFlow and the SDK releases that have it."""

from __future__ import annotations

import functools
import pathlib

_FILE = pathlib.Path(__file__).with_suffix(".txt")


@functools.cache
def _table() -> dict[str, tuple[str, dict[str, str]]]:
    table: dict[str, tuple[str, dict[str, str]]] = {}
    _, *paragraphs = _FILE.read_text(encoding="ascii").strip().split("\n\n")
    for paragraph in paragraphs:
        head, *lines = paragraph.split("\n")
        module, releases = head.split()
        names: dict[str, str] = {}
        for line in lines:
            span, _, words = line.partition(":")
            names.update(dict.fromkeys(words.split(), span))
        table[module] = (releases, names)
    return table


@functools.cache
def modules() -> dict[str, str]:
    """Module name as scripts import it -> the SDK releases that have it, such as ``"1.2-2.5"``."""
    return {module: releases for module, (releases, _) in _table().items()}


def attributes(module: str) -> dict[str, str]:
    """Public names of one module -> the SDK releases that have them; empty for an unknown module."""
    return _table().get(module, ("", {}))[1]
