"""Represents the tile mapping of a program's tensors, as read from the program's compile event."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Tile:
    """A part of a tensor.

    Args:
        tile: its tile; the tiles of IPU 1 follow those of IPU 0.
    """

    tile: int
    num_elements: int


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An argument, variable or intermediate tensor of a program.

    Args:
        inst: its name in the program, such as `arg0.1` or `add.3`.
        dtype: such as `FLOAT32`.
        has_constant: whether the program knows its value.
        has_aliases: whether others are in the same place.
        name: the name of the op; for an argument `XLA_Args/` and its name in the script.
    """

    inst: str
    index: int
    shape: list[int]
    dtype: str
    has_constant: bool
    has_aliases: bool
    num_elements: int
    tiles: list[Tile]
    name: str

    def tile_ids(self) -> list[int]:
        """Returns the tiles that have a part of it."""
        return sorted({part.tile for part in self.tiles})

    @property
    def id(self) -> str:
        """Instruction and index, which no other tensor has."""
        return f"{self.inst},{self.index}"


class TensorMap:
    """The tensors of a program by computation: the program, its loops, branches and matmuls.

    Args:
        tensor_map: the JSON of a COMPILE_END event, parsed.

    Attributes:
        pipelines: for each pipeline and stage the IPUs that it is on.

    Source: `tensorflow.python.ipu.test_utils.report_helper.TensorMap`.

    Example:
        >>> row = ["arg0.1", 0, [2], "FLOAT32", 0, 0, 2, [[5, 2]], "XLA_Args/x"]
        >>> TensorMap({"mappings": {"cluster": [row]}}).tile_ids()
        {5}
    """

    def __init__(self, tensor_map: Mapping[str, Any]) -> None:
        self.mappings = {
            computation: [_tensor(*row) for row in rows] for computation, rows in tensor_map["mappings"].items()
        }
        self.pipelines: list[list[list[int]]] = tensor_map.get("pipelines", [])

    def all_tensors(self) -> Iterator[Tensor]:
        """Returns the tensors of all computations."""
        return (tensor for tensors in self.mappings.values() for tensor in tensors)

    def computation_names(self) -> list[str]:
        """Returns the computations of the tensors."""
        return list(self.mappings)

    def tile_ids(self, computation: str | Iterable[str] | None = None) -> set[int]:
        """Returns the tiles that have tensors.

        Args:
            computation: the name or names of the computations to which these belong; all by default.
        """
        names = [computation] if isinstance(computation, str) else computation or self.mappings
        return {tile for name in names for tensor in self.mappings[name] for tile in tensor.tile_ids()}

    def tensor_inst_name_mappings(self) -> dict[str, str]:
        """Returns the script's name of each tensor, by its id."""
        return {tensor.id: tensor.name for tensor in self.all_tensors()}


def _tensor(
    inst: str,
    index: int,
    shape: list[int],
    dtype: str,
    has_constant: int,
    has_aliases: int,
    num_elements: int,
    tiles: list[list[int]],
    name: str,
) -> Tensor:
    parts = [Tile(*part) for part in tiles]
    return Tensor(inst, index, shape, dtype, bool(has_constant), bool(has_aliases), num_elements, parts, name)
