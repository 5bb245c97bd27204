"""Sizes of computations, one class for each kind of work."""

from __future__ import annotations

from typing import NamedTuple


class MatmulSizes(NamedTuple):
    """A matmul of `[rows, inner]` by `[inner, columns]` for each group and kernel position.

    A convolution's rows are the batch's output positions, inner its input channels, columns its output channels.
    """

    groups: int
    rows: int
    inner: int
    columns: int
    positions: int = 1


class ElementwiseSizes(NamedTuple):
    """Elementwise work: elements of the result, operands, cycles per vector, elements of broadcast operands."""

    elements: int
    operands: int
    vector_cycles: int
    broadcast: int = 0


class CastSizes(NamedTuple):
    """A cast: elements, bytes of an element before and after."""

    elements: int
    from_bytes: int
    to_bytes: int


class ReduceSizes(NamedTuple):
    """A reduction: elements read and written; lengths of axes, innermost first, reduced and kept in turn."""

    inputs: int
    outputs: int
    axes: tuple[int, ...] = ()


class WindowSizes(NamedTuple):
    """A pooling: elements of the result and of a window."""

    elements: int
    window: int


class GatherSizes(NamedTuple):
    """A gather: elements of the result and of the table."""

    elements: int
    table: int


class ElementCount(NamedTuple):
    """Work that depends only on the number of elements: updates, copies, random numbers and others."""

    elements: int


class SortSizes(NamedTuple):
    """A sort: elements, and the length of the sorted axis."""

    elements: int
    length: int


class HostSizes(NamedTuple):
    """A copy with the host or remote memory: bytes to the IPU; negative if they come from it."""

    bytes: int


class FeedSizes(NamedTuple):
    """A feed's copy: bytes to the IPU (negative if they come from it), and the I/O tiles that hold them."""

    bytes: int
    tiles: int


class Move(NamedTuple):
    """A copy from one chip to another."""

    bytes: int
    source: int
    destination: int


class ExchangeSizes(NamedTuple):
    """An exchange between chips: its copies."""

    moves: tuple[Move, ...]


class CollectiveSizes(NamedTuple):
    """A collective.

    Args:
        group: replicas that take part, neighbours of each other; 0 for all.
        merged_bytes: up to which it is sent together with others of its kind.
        rounds: two for a sum, one for a gather.
    """

    bytes: int
    group: int
    merged_bytes: int
    rounds: int


Sizes = (
    MatmulSizes
    | ElementwiseSizes
    | CastSizes
    | ReduceSizes
    | WindowSizes
    | GatherSizes
    | ElementCount
    | SortSizes
    | HostSizes
    | FeedSizes
    | ExchangeSizes
    | CollectiveSizes
)

SIZES_OF_KIND: dict[str, type[Sizes]] = {
    "product": MatmulSizes,
    "elementwise": ElementwiseSizes,
    "cast": CastSizes,
    "reduce": ReduceSizes,
    "window": WindowSizes,
    "gather": GatherSizes,
    "update": ElementCount,
    "copy": ElementCount,
    "random": ElementCount,
    "sort": SortSizes,
    "other": ElementCount,
    "host": HostSizes,
    "feed": FeedSizes,
    "remote": HostSizes,
    "exchange": ExchangeSizes,
    "collective": CollectiveSizes,
}
"""The class of sizes of each kind of computation."""
