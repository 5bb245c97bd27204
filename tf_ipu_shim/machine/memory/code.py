"""Estimates the tile memory of stacks, vertices, control code and exchange code.

Poplar publishes it for three programs only: a three-input adder, a dense layer, and ResNet-50 in two stages. The bytes
of a unit below are the few figures that these programs distinguish.
"""

from __future__ import annotations

from typing import NamedTuple

CODE_ERROR_FACTOR = 2.0
"""All of it together is expected between ours divided by this and ours times it; its parts are less certain."""

STACK_BYTES = 3168
"""Bytes of a tile: 3,852,288 bytes of the adder on 1,216 tiles. Stacks do not grow with the program."""
VERTEX_TYPE_BYTES = 1000
"""Code of a type of vertices: the two types of the dense layer have 2,422 bytes of a tile."""
COMPUTE_SET_BYTES = 300
"""Vertices, control code and packet headers of a compute set: ResNet-50 has 61,900 bytes for all but exchanges."""
EXCHANGE_BYTES = 600
"""Code of an exchange of tiles, apart from its messages: ResNet-50 has 92,800 bytes of a tile for some 64 exchanges."""
HOST_EXCHANGE_BYTES = 149
"""Code and packet headers of a copy with the host: 361,840 bytes of the adder's 1,216 tiles for one each way."""
MESSAGE_BYTES = 16
"""Code of a message, on the tile that receives it: four instructions."""
MESSAGES_OF_EXCHANGE = 128
"""Messages of an exchange at most: larger tensors have longer messages, or ResNet-50 in one stage would not fit."""


class TilePart(NamedTuple):
    """A part of a tile's memory.

    Args:
        name: its kind.
        tile_bytes: the bytes on each tile.
    """

    name: str
    tile_bytes: int


class CodeCounts(NamedTuple):
    """The parts of a program that need code; equal ones share it, as Poplar's outlining makes them.

    Args:
        vertex_types: different vertex types, by name and element type.
        compute_sets: different compute sets.
        exchanges: different exchanges between tiles or IPUs.
        messages: the messages that a tile receives in these exchanges, `MESSAGES_OF_EXCHANGE` at most in each.
        host_exchanges: different copies with the host.
    """

    vertex_types: int
    compute_sets: int
    exchanges: int
    messages: int
    host_exchanges: int = 0


def code_of(counts: CodeCounts) -> tuple[TilePart, ...]:
    """Returns the parts of a tile's memory that hold code.

    Source: docs/reference/facts.md, section "Profiles".

    Example:
        >>> sum(part.tile_bytes for part in code_of(CodeCounts(1, 2, 2, 10)))
        6128
    """
    return (
        TilePart("stacks", STACK_BYTES),
        TilePart("vertex code", counts.vertex_types * VERTEX_TYPE_BYTES),
        TilePart("vertices and control code", counts.compute_sets * COMPUTE_SET_BYTES),
        TilePart(
            "exchange code",
            counts.exchanges * EXCHANGE_BYTES
            + counts.messages * MESSAGE_BYTES
            + counts.host_exchanges * HOST_EXCHANGE_BYTES,
        ),
    )
