"""Estimates the tile memory of stacks, vertices, control code and exchange code.

Poplar's totals are published for thirteen programs: a three-input adder, a dense layer, ten small networks, and
ResNet-50 in two stages. The bytes of a unit below are the few figures that these programs distinguish. A tile holds
vertices only of the compute sets that it takes part in: the fullest takes part in all.
"""

from __future__ import annotations

from typing import NamedTuple

CODE_ERROR_FACTOR = 2.0
"""All of it together is expected between ours divided by this and ours times it; its parts are less certain."""

STACK_BYTES = 3168
"""Bytes of a tile: 3,852,288 bytes of the adder on 1,216 tiles. Stacks do not grow with the program."""
VERTEX_TYPE_BYTES = 700
"""Code of a type of vertices: 140 bytes in the adder, 1,211 in the dense layer, whose types are of matmuls."""
CONTROL_BYTES = 35
"""Control code of a compute set, on each tile: half of the 71 bytes of the dense layer, which has two."""
COMPUTE_SET_BYTES = 100
"""Vertices of a compute set, on its tiles: what small networks have besides all else."""
EXCHANGE_BYTES = 50
"""Code of an exchange of tiles, apart from its messages: the adder has one."""
HOST_EXCHANGE_BYTES = 149
"""Code and packet headers of a copy with the host: 361,840 bytes of the adder's 1,216 tiles for one each way."""
MESSAGE_BYTES = 16
"""Code of a message, on the tile that receives it: ResNet-50 has 92,800 bytes of a tile for 5,000 of them."""
MESSAGE_VERTEX_BYTES = 6
"""Pointers and work lists of vertices for each message: ResNet-50 has 61,900 bytes besides exchanges."""
MESSAGES_OF_EXCHANGE = 128
"""Messages of an exchange at most: larger tensors have longer messages, or ResNet-50 in one stage would not fit."""


class TilePart(NamedTuple):
    """A part of a tile's memory.

    Args:
        name: its kind.
        tile_bytes: the bytes on the fullest tile.
        mean_bytes: their average over the tiles.
    """

    name: str
    tile_bytes: int
    mean_bytes: int


class CodeCounts(NamedTuple):
    """The parts of a program that need code; equal ones share it, as Poplar's outlining makes them.

    Args:
        vertex_types: different vertex types, by name and element type. A type counts as the part of the tiles that have
            it, as do the parts of compute sets and messages below.
        compute_sets: different compute sets.
        compute_set_parts: the parts of the tiles that take part in each, together.
        exchanges: different exchanges between tiles or IPUs.
        messages: the messages that a tile receives in these exchanges, `MESSAGES_OF_EXCHANGE` at most in each.
        host_exchanges: different copies with the host.
    """

    vertex_types: float
    compute_sets: int
    compute_set_parts: float
    exchanges: int
    messages: float
    host_exchanges: int = 0


def code_of(counts: CodeCounts) -> tuple[TilePart, ...]:
    """Returns the parts of a tile's memory that hold code.

    Source: docs/reference/facts.md, section "Profiles".

    Example:
        >>> parts = code_of(CodeCounts(1, 2, 1.5, 2, 10))
        >>> sum(part.tile_bytes for part in parts), sum(part.mean_bytes for part in parts)
        (4458, 4408)
    """
    vertices = counts.messages * MESSAGE_VERTEX_BYTES
    exchanges = (
        counts.exchanges * EXCHANGE_BYTES
        + counts.messages * MESSAGE_BYTES
        + counts.host_exchanges * HOST_EXCHANGE_BYTES
    )
    return (
        _even("stacks", STACK_BYTES),
        _even("vertex code", counts.vertex_types * VERTEX_TYPE_BYTES),
        _even("control code", counts.compute_sets * CONTROL_BYTES),
        TilePart(
            "vertices",
            round(counts.compute_sets * COMPUTE_SET_BYTES + vertices),
            round(counts.compute_set_parts * COMPUTE_SET_BYTES + vertices),
        ),
        _even("exchange code", exchanges),
    )


def _even(name: str, size: float) -> TilePart:
    """Returns a part that is as large on each tile."""
    return TilePart(name, round(size), round(size))
