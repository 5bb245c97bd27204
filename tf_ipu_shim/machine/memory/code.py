"""Estimates the tile memory of code, stacks and vertex state.

Poplar publishes it for whole programs only. One is small enough to be all overhead: an adder of three inputs on one
GC2, whose report Graphcore's documentation prints. Every program has at least that much on each tile, and this is what
is reported: its own figure, in no plan.
"""

from __future__ import annotations

from typing import NamedTuple

CODE_ERROR_FACTOR = 3.0
"""All of it together is expected between ours divided by this and ours times it; its parts are less certain."""

_TILES = 1216  # of the GC2


class TilePart(NamedTuple):
    """A part of a tile's memory.

    Args:
        name: what it is.
        tile_bytes: on each tile.
    """

    name: str
    tile_bytes: int


CODE = (
    TilePart("stacks", 3_852_288 // _TILES),
    TilePart("control code", 851_272 // _TILES),
    TilePart("exchange code", (60_792 + 351_328) // _TILES),
    TilePart("vertex code and vertices", (170_788 + 14_640) // _TILES),
    TilePart("packet headers and instrumentation", (10_512 + 4_876) // _TILES),
)
"""Parts of the smallest program that is published, those of tensors left out.

Source: docs/facts.md, section "Profiles".
"""
