"""Represents tuple values of an HLO program as trees of values, and finds which share memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from tf_ipu_shim.machine.memory import Block, Mode

Tree = Union[int, "list[Tree]"]  # a value's number; a list of them for a tuple


def leaves_of(tree: Tree) -> list[int]:
    """Returns the leaves of a tree, from left to right."""
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves_of(part)]


def with_leaves(structure: Tree, leaves: Iterator[int]) -> Tree:
    """Returns a tree of the same structure with other leaves."""
    return next(leaves) if isinstance(structure, int) else [with_leaves(part, leaves) for part in structure]


def argument_leaves(by_id: Mapping[int, Any], arguments: Sequence[Tree]) -> dict[int, int]:
    """Returns the values of the instructions of a computation that are arguments of it, or elements of one."""
    sources: dict[int, Tree] = {}
    for instruction_id, instruction in by_id.items():
        if instruction.opcode == "parameter":
            sources[instruction_id] = arguments[instruction.parameter_number]
        elif instruction.opcode == "get-tuple-element":
            source = sources.get(instruction.operand_ids[0])
            if isinstance(source, list):
                sources[instruction_id] = source[instruction.tuple_index]
    return {instruction_id: source for instruction_id, source in sources.items() if isinstance(source, int)}


def is_same(block: Block, value: int, other: int) -> bool:
    """Returns whether a value is another one or a view of all of it."""
    return value == other or origin(block, value, other) == other


def origin(block: Block, value: int, other: int = -1) -> int:
    """Follows full views of a value to the value that they show; stops at `other`."""
    while value != other:
        current = block.values[value]
        if current.mode is not Mode.VIEW or len(current.of) != 1 or current.bytes != block.values[current.of[0]].bytes:
            break
        value = current.of[0]
    return value
