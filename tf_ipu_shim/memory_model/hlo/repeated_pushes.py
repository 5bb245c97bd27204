"""Finds lists to which a loop pushes an invariant tensor, such as a weight for its gradient.

All elements of such a list are one tensor. TensorFlow's gradient of a loop pushes one for each variable that the body
reads. A compiler keeps the tensor once, for the gradient to read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_FORWARDING = frozenset({"bitcast", "copy", "reshape"})


class Push(NamedTuple):
    """A push in a loop: the writing instruction, and the state indices of list and tensor."""

    update: int
    list_index: int
    tensor_index: int


def find_pushes(body: Any) -> list[Push]:
    """Returns the pushes of a loop's body that push the same tensor each time."""
    by_id = {instruction.id: instruction for instruction in body.instructions}
    root = by_id[body.root_id]
    if root.opcode != "tuple":
        return []
    unchanged = {place for place, operand_id in enumerate(root.operand_ids) if _state_index(by_id, operand_id) == place}
    found = (_push(by_id, by_id[operand_id], place) for place, operand_id in enumerate(root.operand_ids))
    return [push for push in found if push is not None and push.tensor_index in unchanged]


def _push(by_id: Mapping[int, Any], pair: Any, place: int) -> Push | None:
    """Returns the push that is the only change of a list in an iteration, or None."""
    if pair.opcode != "tuple" or len(pair.operand_ids) != 2:
        return None
    update, count = (by_id[operand_id] for operand_id in pair.operand_ids)
    if update.opcode != "dynamic-update-slice" or count.opcode != "add":
        return None
    elements, pushed, index, *offsets = update.operand_ids
    begins = all(by_id[operand_id].opcode == "constant" for operand_id in offsets)
    one_more = any(_part_of_list(by_id, operand_id, place, 1) for operand_id in count.operand_ids) and any(
        by_id[operand_id].opcode == "constant" for operand_id in count.operand_ids
    )
    at_end = _part_of_list(by_id, elements, place, 0) and _part_of_list(by_id, index, place, 1)
    tensor_place = _state_index(by_id, pushed)
    if not (begins and one_more and at_end) or tensor_place is None:
        return None
    return Push(update.id, place, tensor_place)


def _part_of_list(by_id: Mapping[int, Any], instruction_id: int, place: int, part: int) -> bool:
    """Returns whether an instruction is the elements (0) or the length (1) of a list in the state."""
    operand = by_id[instruction_id]
    return (
        operand.opcode == "get-tuple-element"
        and operand.tuple_index == part
        and _state_index(by_id, operand.operand_ids[0]) == place
    )


def _state_index(by_id: Mapping[int, Any], instruction_id: int) -> int | None:
    """Returns the state index that an instruction passes on, or None."""
    operand = by_id[instruction_id]
    while operand.opcode in _FORWARDING:
        operand = by_id[operand.operand_ids[0]]
    if operand.opcode != "get-tuple-element" or by_id[operand.operand_ids[0]].opcode != "parameter":
        return None
    return int(operand.tuple_index)
