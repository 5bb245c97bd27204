"""Tiles that a configuration sets apart for transfers: which IPUs have them, and what lies on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.machine.chips import Chip

HOST_PACKET_BYTES = 256
"""What goes to the host or comes from it is not cut into smaller parts."""


@dataclasses.dataclass(frozen=True)
class IoTiles:
    """What the configuration sets apart.

    Args:
        count: tiles on each IPU that has feeds; 0 where feeds have no tiles of their own.
        proportion: the part of their memory that feeds may take.

    Source: docs/facts.md, section "I/O tiles".
    """

    count: int = 0
    proportion: float = 0.9

    def used_by(self, feeds: Iterable[tuple[int, int]], chip: Chip) -> frozenset[int]:
        """The IPUs whose feeds lie on I/O tiles; not those whose feeds are too large for these.

        Args:
            feeds: the IPU and the bytes of each element.
            chip: of all IPUs.
        """
        sizes: dict[int, int] = {}
        for ipu, size in feeds if self.count else ():
            sizes[ipu] = sizes.get(ipu, 0) + size
        limit = self.proportion * self.count * chip.bytes_per_tile
        return frozenset(ipu for ipu, size in sizes.items() if size <= limit)

    def others(self, chip: Chip) -> Chip:
        """The chip with those tiles alone that compute."""
        return chip.with_tiles(chip.tiles - self.count)

    def copy(self, feed: Computation, name: str) -> Computation:
        """A copy from the host or to it, with the exchange between the I/O tiles and those that compute.

        Args:
            feed: of the kind `host`.
            name: of what makes the tensor.
        """
        return Computation("feed", f"Copy_{name}", (*feed.sizes, self.count), feed.element_bytes)

    def elements_on_a_tile(self, elements: int, size: int) -> int:
        """How many numbers of so many bytes are on each I/O tile that a feed is on.

        Example:
            >>> [IoTiles(32).elements_on_a_tile(elements, 2) for elements in (128, 8192)]
            [128, 256]
        """
        return max(1, HOST_PACKET_BYTES // size, -(-elements // self.count))


def io_tiles_of(options: Any) -> IoTiles:
    """What a configuration sets apart for feeds: nothing, unless it puts these on I/O tiles.

    Args:
        options: the `IpuOptions` of the device.
    """
    if not options.place_ops_on_io_tiles:
        return IoTiles()
    return IoTiles(options.num_io_tiles, options.io_tile_available_memory_proportion)
