"""Values of an XLA program, tuples of them, and which of them are the same memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from tf_ipu_shim.machine.memory import Block, Mode

Tree = Union[int, "list[Tree]"]  # a value's number; a list of them for a tuple


def flat(tree: Tree) -> list[int]:
    """The numbers in a tree, from left to right."""
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in flat(part)]


def packed(structure: Tree, leaves: Iterator[int]) -> Tree:
    """A tree of the same structure, of other numbers from left to right."""
    return next(leaves) if isinstance(structure, int) else [packed(part, leaves) for part in structure]


def is_same(block: Block, value: int, other: int) -> bool:
    """Whether a value is another one, or a view of the whole of it."""
    return value == other or origin(block, value, other) == other


def origin(block: Block, value: int, other: int = -1) -> int:
    """What a value is a view of the whole of, or the value itself; `other` where that is met on the way."""
    while value != other:
        here = block.values[value]
        if here.mode is not Mode.VIEW or len(here.of) != 1 or here.bytes != block.values[here.of[0]].bytes:
            break
        value = here.of[0]
    return value
