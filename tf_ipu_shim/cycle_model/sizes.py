"""Defines the sizes of computations, by one class for each kind of work."""

from __future__ import annotations

from typing import NamedTuple


class MatmulSizes(NamedTuple):
    """A matmul of `[rows, inner]` by `[inner, columns]` for each group and kernel position.

    A convolution's rows are the batch's output positions, inner its input channels, columns its output channels.

    Args:
        window: the extents of a convolution's kernel and of its result, for each axis with several positions.
    """

    groups: int
    rows: int
    inner: int
    columns: int
    positions: int = 1
    window: tuple[tuple[int, int], ...] = ()

    @property
    def products(self) -> int:
        """The number of multiplications."""
        return self.groups * self.rows * self.inner * self.columns * self.positions


class ElementwiseSizes(NamedTuple):
    """Elementwise work.

    Args:
        elements: the elements of the result.
        operands: number of tensors that it combines.
        operation: as PopLibs calls it, in small letters.
        dtype: the dtype in which it computes; the operands' for a comparison.
        broadcast: elements of broadcast operands.
        form: how the smaller operand is broadcast to the other, see `vertices.elementwise`.
        row: elements of the repeated vector, or that meet the same element. For others, see the same function.
    """

    elements: int
    operands: int
    operation: str = "add"
    dtype: str = "float32"
    broadcast: int = 0
    form: str = ""
    row: int = 0


class CastSizes(NamedTuple):
    """A cast: elements, dtype before and after."""

    elements: int
    before: str
    after: str


class ReduceSizes(NamedTuple):
    """A reduction.

    Args:
        inputs: elements read.
        outputs: elements written.
        axes: lengths of axes, innermost first; reduced and kept axes alternate.
        dtype: the dtype of the elements; a floating-point type of their size if empty.
        adds: whether it is a sum.
    """

    inputs: int
    outputs: int
    axes: tuple[int, ...] = ()
    dtype: str = ""
    adds: bool = True


class WindowSizes(NamedTuple):
    """A pooling: elements of the result, positions of a window, `max`, `sum` or `max_grad`, neighbouring channels."""

    elements: int
    window: int
    kind: str = "max"
    channels: int = 16


class GatherSizes(NamedTuple):
    """A gather: elements of the result, of the table and of a row; whether it is one slice."""

    elements: int
    table: int
    row: int = 0
    is_slice: bool = False


class UpdateSizes(NamedTuple):
    """A scatter: elements written, of the table and of a row; whether it is one slice, and whether it adds."""

    elements: int
    table: int = 0
    row: int = 0
    is_slice: bool = False
    adds: bool = False


FIFO_WORD = 4
"""Bytes of a FIFO that are copied at a time."""


class FifoSizes(NamedTuple):
    """A pipeline's FIFO: elements of a mini-batch, its tensors, and for how many mini-batches there are slots."""

    elements: int
    tensors: int
    slots: int


class NormSizes(NamedTuple):
    """A normalisation: elements, channels, `inference`, `training` or `gradient`, neighbours of the same channel."""

    elements: int
    channels: int
    kind: str = "training"
    run: int = 1


class RandomSizes(NamedTuple):
    """Random numbers: elements, distribution (see `library_vertices.random_numbers`), dtype if not a float."""

    elements: int
    distribution: str = "uniform"
    dtype: str = ""


class ElementCount(NamedTuple):
    """Work that depends only on the number of elements: copies and others."""

    elements: int


class SortSizes(NamedTuple):
    """A sort.

    Args:
        elements: elements of all rows.
        length: elements of a row.
        dtype: the dtype of the keys.
        has_values: whether other tensors are sorted by them.
        kept: how many of a row are wanted; all if 0.
    """

    elements: int
    length: int
    dtype: str = "float32"
    has_values: bool = False
    kept: int = 0


class SolveSizes(NamedTuple):
    """A solve with triangular matrices.

    Args:
        matrices: how many there are.
        side: rows of a matrix.
        columns: the columns that are solved for.
        block: rows of the blocks that are solved directly; PopLibs' default if 0.
    """

    matrices: int
    side: int
    columns: int
    block: int = 0


class FactorSizes(NamedTuple):
    """A Cholesky factorisation: matrices and their rows."""

    matrices: int
    side: int


class HostSizes(NamedTuple):
    """A copy with the host or remote memory: bytes to the IPU; negative if from it."""

    bytes: int


class FeedSizes(NamedTuple):
    """A feed's copy: bytes to the IPU (negative if from it), and the I/O tiles that hold them."""

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


class UserOpStep(NamedTuple):
    """A compute set or an exchange of a user's Poplar op.

    Args:
        kind: `"compute"` or `"exchange"`.
        cycles: the cycles of the slowest tile.
        total: cycles of all tiles.
        bytes: the bytes that an exchange moves.
        received: bytes that the busiest tile receives.
        times: how often it runs.
    """

    kind: str
    name: str
    cycles: int
    tiles: int
    total: int
    bytes: int
    received: int
    vertex: str
    vertices: int
    times: float


class UserOpSizes(NamedTuple):
    """A user's Poplar op: the steps of its program, in order."""

    steps: tuple[UserOpStep, ...]


Sizes = (
    MatmulSizes
    | ElementwiseSizes
    | CastSizes
    | ReduceSizes
    | WindowSizes
    | GatherSizes
    | UpdateSizes
    | FifoSizes
    | NormSizes
    | RandomSizes
    | ElementCount
    | SortSizes
    | SolveSizes
    | FactorSizes
    | HostSizes
    | FeedSizes
    | ExchangeSizes
    | CollectiveSizes
    | UserOpSizes
)

SIZES_OF_KIND: dict[str, type[Sizes]] = {
    "product": MatmulSizes,
    "elementwise": ElementwiseSizes,
    "cast": CastSizes,
    "reduce": ReduceSizes,
    "window": WindowSizes,
    "gather": GatherSizes,
    "update": UpdateSizes,
    "fifo": FifoSizes,
    "norm": NormSizes,
    "copy": ElementCount,
    "random": RandomSizes,
    "sort": SortSizes,
    "solve": SolveSizes,
    "factor": FactorSizes,
    "other": ElementCount,
    "host": HostSizes,
    "feed": FeedSizes,
    "remote": HostSizes,
    "exchange": ExchangeSizes,
    "collective": CollectiveSizes,
    "user_op": UserOpSizes,
}
"""The class of sizes of each kind of computation."""
