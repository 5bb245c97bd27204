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
from typing import Any

from tf_ipu_shim import sdk

FILE = pathlib.Path(__file__).with_name("emulated_names.json")
FIRST, LATER = "2.15", "2.16 and later"
"""The sections: Estimator and Keras 2 within TensorFlow, and without."""
_PACKAGES = ("tensorflow-cpu", "tensorflow")

Row = Mapping[str, Any]


def is_used() -> bool:
    """Whether the table answers: where TensorFlow is not loaded, and no SDK is chosen, as that changes the names.

    Example:
        >>> import tensorflow
        >>> is_used()
        False
    """
    return "tensorflow" not in sys.modules and not os.environ.get(sdk.ENVIRONMENT_VARIABLE)


def section(version: str) -> str:
    """The section of a TensorFlow version.

    Example:
        >>> section("2.21.0")
        '2.16 and later'
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return FIRST if (major, minor) < (2, 16) else LATER


@functools.cache
def modules() -> dict[str, dict[str, Row]]:
    """Module -> name -> its row, of all modules that can be imported with the installed TensorFlow.

    A row has `state` and `reason` unless the name is emulated, `module` if it is one, `lineage` of a class, and
    `arguments` of a call.
    """
    content = json.loads(FILE.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Row]] = content[FIRST]["modules"]
    if section(_version()) == LATER:
        for module, rows in content[LATER]["modules"].items():
            found[module] = {**found.get(module, {}), **rows}
        for module, reason in content[LATER]["absent"].items():
            found.pop(module, None)
            content[FIRST]["absent"][module] = reason
    _absent().update(content[FIRST]["absent"])
    return found


@functools.cache
def _absent() -> dict[str, str]:
    return {}


def absence_reason(module: str) -> str:
    """Why a module of Graphcore's cannot be imported; empty if it can, or is unknown."""
    modules()
    return _absent().get(module, "")


@functools.cache
def keras_methods() -> frozenset[str]:
    """Methods that a Keras model has only under a strategy."""
    return frozenset(json.loads(FILE.read_text(encoding="utf-8"))["keras_methods"])


def _version() -> str:
    for package in _PACKAGES:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{FIRST}.0"
