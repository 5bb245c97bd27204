"""Distributes tensors over the tiles of a chip by a linear mapping like Poplar's.

Poplar maps convolutions and matmuls by its own plans, so one tile of a real program may hold more than
here. The sum over the tiles is exact, and a program is always spread in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MINIMUM_BYTES_PER_TILE = 128
GRAIN_BYTES = 8  # the width of a tile's data path


class Tiles:
    """Bytes on each tile of one IPU.

    A tensor is divided into equal pieces, one for each tile: at least 128 bytes each, in steps of 8. The last one has
    the remainder. The first piece goes to the tile after the one with the last tensor's last piece.

    Args:
        tiles: how many there are.

    Source: PopLibs `poputil/TileMapping.cpp` (`calcLinearTileMapping`), and the linear mapping with an offset that
    Graphcore's TensorFlow uses (`tools/mapping_helper.cc`).

    Example:
        >>> tiles = Tiles(4)
        >>> tiles.place([256, 1000])
        >>> tiles.bytes()
        [384, 360, 256, 256]
    """

    def __init__(self, tiles: int) -> None:
        self._tiles = tiles
        self._changes = [0] * (tiles + 1)  # differences from tile to tile, so that a tensor costs a constant time
        self._next = 0

    def place(self, sizes: Iterable[int], counts: bool = True) -> None:
        """Adds tensors by their bytes, in this order; uncounted tensors only advance the position."""
        for size in sizes:
            if size <= 0:
                continue
            share = -(-size // self._tiles)
            piece = max(MINIMUM_BYTES_PER_TILE, -(-share // GRAIN_BYTES) * GRAIN_BYTES)
            full, rest = divmod(size, piece)
            if counts:
                self._add(self._next, full, piece)
                self._add((self._next + full) % self._tiles, 1, rest)
            self._next = (self._next + full + (rest > 0)) % self._tiles

    def put(self, size: int, runs: Sequence[tuple[int, int]]) -> None:
        """Adds a tensor with a given tile mapping; a linear one if that is of a larger chip or another size.

        Example:
            >>> tiles = Tiles(4)
            >>> tiles.put(100, [(0, 1), (50, 2)])
            >>> tiles.bytes()
            [0, 50, 50, 0]
        """
        if (
            sum(count for _, count in runs) > self._tiles
            or sum(tile_bytes * count for tile_bytes, count in runs) != size
        ):
            self.place([size])
            return
        first = 0
        for tile_bytes, count in runs:
            self._add(first, count, tile_bytes)
            first += count

    @staticmethod
    def filled(
        tiles: int,
        sizes: Iterable[int],
        io_tiles: int = 0,
        fed: Iterable[int] = (),
        mapped: Iterable[tuple[int, Sequence[tuple[int, int]]]] = (),
    ) -> list[int]:
        """Bytes on each tile of an IPU, whose last tiles may be I/O tiles.

        Example:
            >>> Tiles.filled(4, [256, 256], io_tiles=2, fed=[128])
            [256, 256, 128, 0]
        """
        computing, apart = Tiles(tiles - io_tiles), Tiles(max(1, io_tiles))
        computing.place(sizes)
        for size, runs in mapped:
            computing.put(size, runs)
        apart.place(fed)
        return computing.bytes() + (apart.bytes() if io_tiles else [])

    def _add(self, first: int, count: int, size: int) -> None:
        """`size` bytes on each of `count` tiles, with tile 0 after the last; `count` is at most all tiles."""
        end = first + count
        self._changes[first] += size
        self._changes[min(end, self._tiles)] -= size
        if end > self._tiles:
            self._changes[0] += size
            self._changes[end - self._tiles] -= size

    def bytes(self) -> list[int]:
        """Bytes on each tile, tile 0 first."""
        tile_bytes, on_tile = [], 0
        for change in self._changes[:-1]:
            on_tile += change
            tile_bytes.append(on_tile)
        return tile_bytes
