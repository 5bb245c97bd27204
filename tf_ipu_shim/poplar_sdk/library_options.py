"""Lists the options by which PopLibs plans convolutions, matmuls, poolings and slices, and explains unknown ones."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from tf_ipu_shim import spelling
from tf_ipu_shim.poplar_sdk import option_tables


class Library(NamedTuple):
    """A title for messages, and the names of the tables with its options."""

    title: str
    tables: tuple[str, ...]


LIBRARIES = {
    "convolution": Library("convolutions", ("convolution_options",)),
    "multi_convolution": Library("multi-convolutions", ("convolution_options", "multi_convolution_options")),
    "dot": Library("matmuls", ("matmul_options",)),
    "pooling": Library("poolings", ("pooling_options",)),
    "slice": Library("slices", ("multi_slice_options",)),
}
"""The options by the kind of op that is planned; for convolutions and matmuls it is XLA's instruction."""
OF_CONFIGURATION = {
    "convolutions.poplar_options": "convolution",
    "matmuls.poplar_options": "dot",
    "pooling.poplar_options": "pooling",
    "slices.poplar_options": "slice",
}
"""Maps options of an `IPUConfig` to the kind of op that they plan."""


@functools.cache
def names(library: str) -> tuple[str, ...]:
    """Returns the options of a library, in the order of its tables.

    Example:
        >>> names("pooling")
        ('poolUseIntrospectiveMapping', 'optimizeForSpeed', 'useFloatPartialsWhereBeneficial')
    """
    tables = option_tables.read()
    return tuple(option.name for table in LIBRARIES[library].tables for option in tables[table].options)


def unrecognised(library: str, options: Iterable[str]) -> dict[str, str]:
    """Returns the options that PopLibs does not have, each with Poplar's error.

    Example:
        >>> unrecognised("dot", ["partialsType", "partialType"])["partialType"]
        "Unrecognised option 'partialType' of matmuls. Did you mean 'partialsType'? If not, leave the option out."
    """
    return {
        name: f"Unrecognised option '{name}' of {LIBRARIES[library].title}. {_advice(library, str(name))}"
        for name in options
        if name not in names(library)
    }


def _advice(library: str, name: str) -> str:
    near = spelling.nearest(name.lower(), names(library), key=str.lower)
    if near:
        return f"Did you mean '{near}'? If not, leave the option out."
    return f"Use one of these: {', '.join(names(library))}. Or leave the option out."
