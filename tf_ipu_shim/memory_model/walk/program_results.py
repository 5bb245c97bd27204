"""Reads the results of an XLA program: shapes, small constants, and the order of their elements."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from tf_ipu_shim.memory_model.computations.computations import ComputationContext
from tf_ipu_shim.memory_model.computations.layouts import neighbours_of
from tf_ipu_shim.memory_model.hlo.integer_literals import LITERAL_LIMIT, integer_elements
from tf_ipu_shim.tf_private.protos import xla_data_pb2


class ProgramResult(NamedTuple):
    """A result of an XLA program.

    Args:
        shape: dimensions.
        literal: elements of a small integer constant, such as a shape; None for others.
        neighbours: the axis whose neighbours are neighbours on the tiles, as `neighbours_of` has it.
    """

    shape: tuple[int, ...]
    literal: list[int] | None
    neighbours: int | None


def results_of(entry: Any, stored: Collection[int], context: ComputationContext | None) -> list[ProgramResult]:
    """Returns the results of an entry computation that are not stored in variables.

    Args:
        context: facts about its instructions, if cycles are wanted.
    """
    by_id = {instruction.id: instruction for instruction in entry.instructions}
    root = by_id[entry.root_id]
    shapes = root.shape.tuple_shapes if root.shape.element_type == xla_data_pb2.TUPLE else [root.shape]
    returned = root.operand_ids if root.opcode == "tuple" else [root.id]
    found = []
    for index, instruction_id in enumerate(returned):
        if index in stored:
            continue
        literal = integer_elements(by_id, instruction_id)
        neighbours = None if context is None else neighbours_of(by_id[instruction_id], context.layouts)
        known = literal if 0 < len(literal) <= LITERAL_LIMIT else None
        found.append(ProgramResult(tuple(shapes[index].dimensions), known, neighbours))
    return found
