"""Reads `emulated_names.json`: how each of Graphcore's names is handled, without importing TensorFlow.

`tools/generate_emulated_names.py` writes it from the modules themselves, for the first TensorFlow that is supported,
with the differences of later ones.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from tf_ipu_shim import sdk

FILE = pathlib.Path(__file__).with_name("emulated_names.json")
FIRST, LATER = "2.15", "2.16 and later"
"""The sections: Estimator and Keras 2 within TensorFlow, and without."""
_PACKAGES = ("tensorflow-cpu", "tensorflow")

Row = Mapping[str, Any]


def is_used() -> bool:
    """Whether the table can be used: TensorFlow is not loaded, and no SDK is chosen, which would change the names.

    Example:
        >>> import tensorflow
        >>> is_used()
        False
    """
    return "tensorflow" not in sys.modules and not os.environ.get(sdk.ENVIRONMENT_VARIABLE)


def section(version: str) -> str:
    """Returns the section of a TensorFlow version.

    Example:
        >>> section("2.21.0")
        '2.16 and later'
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return FIRST if (major, minor) < (2, 16) else LATER


class Table(NamedTuple):
    """The content of the file, for the installed TensorFlow.

    Args:
        modules: module -> name -> its row, of all modules that can be imported. A row has `state` and `reason` unless
            the name is emulated, `module` if it is one, `lineage` of a class, and `arguments` of a call.
        absent: why others of Graphcore's modules cannot be imported.
        keras_methods: methods that a Keras model has only under a strategy.
    """

    modules: Mapping[str, Mapping[str, Row]]
    absent: Mapping[str, str]
    keras_methods: frozenset[str]


@functools.cache
def table() -> Table:
    """Reads the file."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    modules, absent = content[FIRST]["modules"], content[FIRST]["absent"]
    if section(_version()) == LATER:
        for module, rows in content[LATER]["modules"].items():
            modules[module] = {**modules.get(module, {}), **rows}
        for module, reason in content[LATER]["absent"].items():
            modules.pop(module, None)
            absent[module] = reason
    return Table(modules, absent, frozenset(content["keras_methods"]))


def _version() -> str:
    for package in _PACKAGES:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{FIRST}.0"
