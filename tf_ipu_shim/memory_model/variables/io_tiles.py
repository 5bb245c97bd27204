"""Models I/O tiles: which IPUs reserve them and which feeds they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.cycle_model.sizes import FeedSizes, HostSizes
from tf_ipu_shim.machine.chips import ChipSpec

HOST_PACKET_BYTES = 256
"""Transfers to and from the host are not divided into smaller parts."""


@dataclasses.dataclass(frozen=True)
class IoTiles:
    """The I/O tiles that a configuration reserves.

    Args:
        count: tiles on each IPU that has feeds; 0 if feeds have no separate tiles.
        proportion: the part of their memory that feeds may use.

    Source: docs/reference/facts.md, section "I/O tiles".
    """

    count: int = 0
    proportion: float = 0.9

    def used_by(self, feeds: Iterable[tuple[int, int]], chip: ChipSpec) -> frozenset[int]:
        """Returns the IPUs whose feeds fit on I/O tiles."""
        sizes: dict[int, int] = {}
        for ipu, size in feeds if self.count else ():
            sizes[ipu] = sizes.get(ipu, 0) + size
        limit = self.proportion * self.count * chip.bytes_per_tile
        return frozenset(ipu for ipu, size in sizes.items() if size <= limit)

    def compute_tiles(self, chip: ChipSpec) -> ChipSpec:
        """Returns the chip with only its compute tiles."""
        return chip.with_tiles(chip.tiles - self.count)

    def copy(self, feed: Computation, name: str) -> Computation:
        """Returns a host copy including the exchange between I/O and compute tiles."""
        size = feed.sizes.bytes if isinstance(feed.sizes, HostSizes) else 0
        return Computation("feed", f"Copy_{name}", FeedSizes(size, self.count), feed.element_bytes)

    def elements_per_tile(self, elements: int, size: int) -> int:
        """Returns the number of elements of a feed on each I/O tile.

        Example:
            >>> [IoTiles(32).elements_per_tile(elements, 2) for elements in (128, 8192)]
            [128, 256]
        """
        return max(1, HOST_PACKET_BYTES // size, -(-elements // self.count))


def io_tiles_of(options: Any) -> IoTiles:
    """Returns the I/O tiles of a configuration: none unless it places feeds on them."""
    if not options.place_ops_on_io_tiles:
        return IoTiles()
    return IoTiles(options.num_io_tiles, options.io_tile_available_memory_proportion)
