"""Computes a program's memory plan from the steps that each IPU runs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.code import TilePart
from tf_ipu_shim.machine.memory.description import Block, Value
from tf_ipu_shim.machine.memory.liveness import smallest
from tf_ipu_shim.machine.memory.tiles import Tiles
from tf_ipu_shim.machine.memory.verdict import Verdict, verdict_of, worst

CATEGORIES = (
    "weight",
    "optimizer_state",
    "accumulator",
    "constant",
    "argument",
    "exchange",
    "activation",
    "fifo",
    "stash",
    "gradient",
    "temporary",
)
"""The purposes of memory. Variables are `weight`, `optimizer_state` (only the update uses it) or `accumulator`
(gradients of several mini-batches). An `argument` is fed for a run, an `exchange` copied from another IPU or replica.
An `activation` is kept for the backward pass, and in a `fifo` for further mini-batches of a pipeline. A `stash` is the
input of recomputation. All other results are `temporary`."""

_OWNERS_KEPT = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class Owner:
    """An allocation at the largest step.

    Args:
        name: a variable's name, or an op's.
        kind: one of `CATEGORIES`.
        line: the user's source line, such as `train.py:12`; None if it is not known.
    """

    name: str
    kind: str
    bytes: int
    line: str | None = None


class LibraryCall(NamedTuple):
    """Temporary tile memory of one library call (a matmul), not included in other figures.

    Args:
        operand_bytes: the bytes of the operands of the current part, in the order that the units require.
        partial_bytes: the bytes of these partial sums, received ones included.
        parts: the number of parts that run one after another, to fit into the proportion of a tile that the call may
            use.
    """

    name: str
    tiles: int
    tile_bytes: int
    operand_bytes: int
    partial_bytes: int
    parts: int
    limit_bytes: int

    @property
    def bytes(self) -> int:
        """On all tiles, each as full as the fullest."""
        return self.tiles * self.tile_bytes


LIBRARY_ERROR_FACTOR = 3.0
"""Temporaries of a library call are expected between ours divided by this and ours times it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class IpuPlan:
    """The memory that a program needs on one IPU at its largest step.

    Args:
        ipu: the shard.
        always_live_bytes: variables, constants, and elements of feeds on I/O tiles: there at every step.
        not_always_live_bytes: the rest at the largest step.
        largest_step: the op that runs then.
        categories: bytes at that step by category; their sum is `peak_bytes`.
        owners: the largest allocations at that step, largest first; at most 50.
        tile_runs: runs of consecutive tiles at that step: the bytes on each tile, and the number of tiles.
        bytes_per_tile: memory of one tile.
        remote: bytes by category that are in remote memory instead, and so in none of the other figures.
        library: the call that needs most memory in addition to the tensors, in none of the other figures. None without
        such a call, or if not requested.
        code: the contents of a tile besides tensors; empty if not requested.
        library_tile_bytes: how much the temporary memory of library ops raises the peak of a tile.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> block = Block("small")
        >>> x = block.add(Value(400, "x", "argument"))
        >>> block.run("x", (), (x,))
        >>> found = plan_of(0, block, CHIPS["gc200"])
        >>> found.peak_bytes, found.percent < 1
        (400, True)
    """

    ipu: int
    always_live_bytes: int
    not_always_live_bytes: int
    largest_step: str
    categories: Mapping[str, int]
    owners: tuple[Owner, ...]
    tile_runs: tuple[tuple[int, int], ...]
    bytes_per_tile: int
    remote: Mapping[str, int] = dataclasses.field(default_factory=dict)
    library: LibraryCall | None = None
    code: tuple[TilePart, ...] = ()
    library_tile_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """The sum of always-live and other bytes."""
        return self.always_live_bytes + self.not_always_live_bytes

    @property
    def tile_bytes(self) -> tuple[int, ...]:
        """Bytes on each tile at that step."""
        return tuple(size for size, tiles in self.tile_runs for _ in range(tiles))

    @property
    def limit_bytes(self) -> int:
        """Memory of the IPU."""
        return self.bytes_per_tile * sum(tiles for _, tiles in self.tile_runs)

    @property
    def percent(self) -> float:
        """Peak as a part of the limit."""
        return 100 * self.peak_bytes / self.limit_bytes

    @property
    def max_tile(self) -> int:
        """The tile with most bytes; the first of several."""
        return self.tile_bytes.index(self.max_tile_bytes)

    @property
    def max_tile_bytes(self) -> int:
        """Bytes on that tile."""
        return max(size for size, _ in self.tile_runs)

    @property
    def fits(self) -> bool:
        """Returns whether no tile has more tensors than it can hold."""
        return self.max_tile_bytes <= self.bytes_per_tile

    @property
    def code_tile_bytes(self) -> int:
        """Code of the fullest tile; 0 if not requested."""
        return sum(part.tile_bytes for part in self.code)

    @property
    def code_bytes(self) -> int:
        """Code of all tiles; 0 if not requested."""
        return sum(part.mean_bytes for part in self.code) * sum(tiles for _, tiles in self.tile_runs)

    def figures(self) -> dict[str, object]:
        """Returns the figures that all reports in JSON have."""
        names = "ipu always_live_bytes not_always_live_bytes peak_bytes limit_bytes fits expected_tile_bytes code_bytes"
        return {**{name: getattr(self, name) for name in names.split()}, "verdict": self.verdict.value}

    @property
    def used_bytes(self) -> int:
        """Peak, with the code of all tiles if it was requested."""
        return self.peak_bytes + self.code_bytes

    @property
    def used_percent(self) -> float:
        """Those bytes as a part of the limit."""
        return 100 * self.used_bytes / self.limit_bytes

    @property
    def expected_tile_bytes(self) -> int:
        """Bytes of the fullest tile with code and library temporaries, as far as these were requested."""
        return self.max_tile_bytes + self.library_tile_bytes + self.code_tile_bytes

    @property
    def verdict(self) -> Verdict:
        """Returns whether it fits, is close or does not fit."""
        expected_excess = self.expected_tile_bytes - self.max_tile_bytes
        return verdict_of(self.max_tile_bytes, expected_excess, self.bytes_per_tile)

    @property
    def contributions(self) -> list[tuple[str, int]]:
        """Parts of a tile's memory at the peak, largest first: tensors by category, code, library temporaries."""
        tiles = sum(tiles for _, tiles in self.tile_runs)
        parts = [(kind.replace("_", " "), size // tiles) for kind, size in self.categories.items()]
        parts += [
            ("library temporaries", self.library_tile_bytes),
            *((part.name, part.tile_bytes) for part in self.code),
        ]
        return sorted((part for part in parts if part[1]), key=lambda part: -part[1])


class Saving(NamedTuple):
    """An action and the bytes it saves.

    Args:
        action: the action in words, with the option that does it.
        bytes: the bytes that the IPU saves.
        fits: whether the whole program fits then.
    """

    action: str
    bytes: int
    fits: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """The memory that a program needs on each IPU, known before it runs.

    Args:
        program: the name of the op that runs it.
        device: the TensorFlow device, such as `/device:IPU:0`.
        chip: title of the chip.
        ipus: one for each IPU that the program uses, in order.
        variables: bytes of each variable by (IPU, name), wherever they are.
        exchanges: bytes a run copies from IPU to IPU, by (source, destination); a loop's body counts once.
        coarse: names of the XLA programs that could not be analysed, with the reason: of those only variables,
            arguments and results are counted.
        shard_ipus: for each replica the IPU of each shard, shape `[replica, shard]`.
        mode: its execution mode, `"xla"` (XLA programs) or `"kernels"` (TensorFlow's kernels); the memory is the same.
        mode_reason: why it has this mode.
        savings: the most effective changes if it does not fit.
        cache: `"hit"` if the executable cache had the program, `"miss"` if not; empty without a cache.
    """

    program: str
    device: str
    chip: str
    ipus: tuple[IpuPlan, ...]
    variables: Mapping[tuple[int, str], int] = dataclasses.field(default_factory=dict)
    exchanges: Mapping[tuple[int, int], int] = dataclasses.field(default_factory=dict)
    coarse: tuple[tuple[str, str], ...] = ()
    shard_ipus: tuple[tuple[int, ...], ...] = ()
    mode: str = "xla"
    mode_reason: str = ""
    cache: str = ""
    savings: tuple[Saving, ...] = dataclasses.field(default=(), compare=False)

    def replicated(self, replicas: int, shards: int) -> MemoryPlan:
        """Returns the plan of several replicas, each like this one."""
        firsts = [replica * shards for replica in range(replicas)]
        return dataclasses.replace(
            self,
            ipus=tuple(dataclasses.replace(ipu, ipu=ipu.ipu + first) for first in firsts for ipu in self.ipus),
            variables={(ipu + at, name): size for at in firsts for (ipu, name), size in self.variables.items()},
            exchanges={(a + at, b + at): size for at in firsts for (a, b), size in self.exchanges.items()},
            shard_ipus=tuple(tuple(ipu + at for ipu in ipus) for at in firsts for ipus in self.shard_ipus),
        )

    @property
    def fits(self) -> bool:
        """Returns whether the program's tensors fit on all its IPUs."""
        return all(ipu.fits for ipu in self.ipus)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its IPUs."""
        return worst([ipu.verdict for ipu in self.ipus])

    @property
    def peak_bytes(self) -> int:
        """Sum of the IPUs' peaks."""
        return sum(ipu.peak_bytes for ipu in self.ipus)


def plan_of(
    ipu: int,
    block: Block,
    chip: ChipSpec,
    line_of: Callable[[str], str | None] | None = None,
    remote: Mapping[str, int] | None = None,
) -> IpuPlan:
    """Computes the plan of one IPU.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> plan_of(0, Block("nothing"), CHIPS["gc200"]).fits
        True
    """
    liveness = smallest(block)
    fed = [value.bytes for value in liveness.always if value.is_on_io_tiles]
    # On a chip with smaller tiles feeds may not fit on those that are set apart, and lie with all else.
    io_tiles = block.io_tiles if sum(fed) <= block.io_tiles * chip.bytes_per_tile else 0
    always = [value for value in liveness.always if io_tiles or not value.is_on_io_tiles]
    alive = [*always, *liveness.at_peak]
    on_tiles = _bytes_on_tiles(alive, chip, io_tiles, fed)
    return IpuPlan(
        ipu=ipu,
        always_live_bytes=sum(value.bytes for value in always),
        not_always_live_bytes=liveness.peak_bytes,
        largest_step=liveness.peak_step,
        categories=_by_category(alive),
        owners=_largest(alive, line_of or _no_line),
        tile_runs=tuple((size, len(list(run))) for size, run in itertools.groupby(on_tiles)),
        bytes_per_tile=chip.bytes_per_tile,
        remote=dict(remote or {}),
    )


def _bytes_on_tiles(alive: Iterable[Value], chip: ChipSpec, io_tiles: int, fed: Sequence[int]) -> list[int]:
    """Returns the memory of each tile: mapped values use their mapping, the others are spread."""
    computing = [value for value in alive if not value.is_on_io_tiles]
    sizes = (value.bytes for value in computing if not value.tiles)
    mapped = [(value.bytes, value.tiles) for value in computing if value.tiles]
    return Tiles.filled(chip.tiles, sizes, io_tiles, fed, mapped)


def _by_category(alive: Iterable[Value]) -> dict[str, int]:
    sums = dict.fromkeys(CATEGORIES, 0)
    for value in alive:
        sums[value.kind] += value.bytes
    return sums


def _no_line(_: str) -> None:
    return None


def _largest(alive: Iterable[Value], line_of: Callable[[str], str | None]) -> tuple[Owner, ...]:
    sums: dict[tuple[str, str], int] = {}
    for value in alive:
        if value.bytes:
            sums[value.owner, value.kind] = sums.get((value.owner, value.kind), 0) + value.bytes
    largest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_OWNERS_KEPT]
    return tuple(Owner(name=name, kind=kind, bytes=size, line=line_of(name)) for (name, kind), size in largest)
