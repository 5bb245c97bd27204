"""Imports TensorFlow internals of AutoGraph: its converter, and the functions that it generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorflow.python.autograph.core import (
    ag_ctx,  # whether code is being converted
    config,  # what is not converted
)
from tensorflow.python.autograph.impl import (
    api,  # tf_convert: converts with the options of the caller
)


def conversions() -> Iterator[Any]:
    """Yields the functions that AutoGraph generated from each function, with the original lines."""
    # Asked while an error is shown, which nothing may replace.
    cached = getattr(getattr(getattr(api, "_TRANSPILER", None), "_cache", None), "_cache", None) or {}
    for of_function in list(cached.values()):
        yield from list(of_function.values())
