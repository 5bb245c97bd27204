"""Lists the hardware figures of the four IPU chips: tiles, memory, clock, arithmetic, exchange and host rates."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChipSpec:
    """The hardware figures of one IPU: memory, clock, arithmetic and exchange rates, per tile unless they say
    otherwise.

    Source: docs/reference/facts.md, section "Chips". `fp16_fp32` means half-precision inputs with single-precision
    partial sums. Memory, tiles and names are in use; the rates are for the cycles of the cycle model.

    Example:
        >>> CHIPS["gc200"].total_bytes == 1472 * 624 * 1024
        True
    """

    name: str
    """Short key, as in `CHIPS`."""
    title: str
    """Name as Graphcore's documents write it."""
    target: str
    """Poplar target version: `ipu1`, `ipu2` or `ipu21`."""
    tiles: int
    """Tiles on the chip."""
    bytes_per_tile: int
    """Memory of one tile, bytes."""
    clock_hz: float
    """Tile clock, hertz."""
    amp_units_fp16: int
    """Accumulating units of a tile for fp16 inputs and fp16 partial sums."""
    amp_units_fp16_fp32: int
    """The same for fp16 inputs and fp32 partial sums."""
    amp_units_fp32: int
    """The same for fp32 throughout."""
    amp_flop_per_cycle_fp16: int
    """Floating-point operations a tile's accumulating units finish in a cycle, fp16 throughout."""
    amp_flop_per_cycle_fp16_fp32: int
    """The same for fp16 inputs and fp32 partial sums."""
    amp_flop_per_cycle_fp32: int
    """The same for fp32 throughout."""
    amp_flop_per_cycle_fp8: int = 0
    """The same for fp8 inputs; 0 if the chip has no fp8."""
    worker_contexts: int = 6
    """Worker threads of a tile."""
    vector_width_fp32: int = 2
    """fp32 elements a worker handles in one vector instruction."""
    vector_width_fp16: int = 4
    """The same for fp16."""
    exchange_bytes_per_cycle: int = 4
    """On-chip exchange, bytes a tile sends and bytes it receives in a cycle."""
    exchange_bytes_per_cycle_shared_bus: int = 8
    """Bytes received in a cycle by two tiles that share a bus and need the same data."""
    memcpy_bytes_per_cycle: int = 8
    """Copy inside a tile, bytes in a cycle."""
    load_bytes_per_cycle: int = 8
    """Loads from ordinary tile memory, bytes in a cycle."""
    load_bytes_per_cycle_interleaved: int = 16
    """Loads from interleaved tile memory, bytes in a cycle."""
    store_bytes_per_cycle: int = 8
    """Stores, bytes in a cycle."""
    host_bytes_per_second: float = 44e9 / 8
    """Rate between the host and one IPU in one direction, on the board that has the chip: here an M2000 or Bow-2000.

    Source: docs/reference/facts.md, section "Host traffic and syncs".
    """

    @property
    def total_bytes(self) -> int:
        """Memory of the whole chip, bytes."""
        return self.tiles * self.bytes_per_tile

    def peak_flops(self, kind: str = "fp16") -> float:
        """Peak arithmetic of the whole chip, the figure data sheets quote.

        Example:
            >>> round(CHIPS["gc200"].peak_flops("fp16") / 1e12)
            251
        """
        rate = getattr(self, f"amp_flop_per_cycle_{kind}", 0)
        if not rate:
            dtypes = [k for k in ("fp16", "fp16_fp32", "fp32", "fp8") if getattr(self, f"amp_flop_per_cycle_{k}")]
            raise ValueError(
                f"The {self.title} has no {kind!r} arithmetic. It has: {', '.join(dtypes)}. Choose one of these."
            )
        return float(rate) * self.tiles * self.clock_hz

    def seconds(self, cycles: float) -> float:
        """Turns tile clock cycles into seconds."""
        return cycles / self.clock_hz

    def cycles(self, seconds: float) -> int:
        """Turns seconds into whole tile clock cycles, rounded up."""
        return math.ceil(seconds * self.clock_hz)

    def with_tiles(self, tiles: int) -> ChipSpec:
        """Returns the same chip with another number of tiles, as `ipu_model.tiles_per_ipu` asks for.

        Example:
            >>> CHIPS["gc200"].with_tiles(4).total_bytes == 4 * 638976
            True
        """
        if isinstance(tiles, bool) or not isinstance(tiles, int) or tiles < 1:
            raise ValueError(f"An IPU with {tiles!r} tiles cannot be simulated. Pass a whole number of at least 1.")
        return dataclasses.replace(self, tiles=tiles)


_GC200 = ChipSpec(
    name="gc200",
    title="GC200 (Mk2)",
    target="ipu2",
    tiles=1472,
    bytes_per_tile=624 * 1024,
    clock_hz=1.33e9,
    amp_units_fp16=16,
    amp_units_fp16_fp32=8,
    amp_units_fp32=16,
    amp_flop_per_cycle_fp16=128,
    amp_flop_per_cycle_fp16_fp32=64,
    amp_flop_per_cycle_fp32=32,
)

CHIPS: dict[str, ChipSpec] = {
    "gc2": ChipSpec(
        name="gc2",
        title="GC2 (Mk1)",
        target="ipu1",
        tiles=1216,
        bytes_per_tile=256 * 1024,
        clock_hz=1.6e9,
        amp_units_fp16=8,
        amp_units_fp16_fp32=8,
        amp_units_fp32=8,
        amp_flop_per_cycle_fp16=64,
        amp_flop_per_cycle_fp16_fp32=64,
        amp_flop_per_cycle_fp32=16,
        host_bytes_per_second=33e9 / 8,  # computed: half of the C600's, as a C2 in a DSS8440 has PCIe Gen3 x8 an IPU
    ),
    "gc200": _GC200,
    "bow": dataclasses.replace(_GC200, name="bow", title="Bow (Mk2 wafer-on-wafer)", clock_hz=1.85e9),
    # No printout shows the C600's clock at work: it follows from the published 280 TFLOP/s in fp16.
    "c600": dataclasses.replace(
        _GC200,
        name="c600",
        title="C600 (Mk2 card)",
        target="ipu21",
        clock_hz=1.486e9,
        amp_flop_per_cycle_fp8=256,
        host_bytes_per_second=66e9 / 8,
    ),
}
"""All simulated chips by short name: `gc2`, `gc200`, `bow`, `c600`."""

_BY_TARGET = {"ipu1": "gc2", "ipu2": "gc200", "ipu21": "c600"}


def for_target(version: str) -> ChipSpec:
    """Returns the chip a Poplar target version means, as in `device_connection.version` and `ipu_model.version`.

    Bow shares its target version with the GC200, which is the one this returns.

    Source: docs/reference/facts.md, section "Chips", first row of the table.

    Example:
        >>> for_target("ipu1").name
        'gc2'
    """
    if version not in _BY_TARGET:
        raise ValueError(f"There is no IPU version {version!r}. Use one of: {', '.join(_BY_TARGET)}.")
    return CHIPS[_BY_TARGET[version]]
