"""What counts the iterations of a loop, and does nothing else."""

from __future__ import annotations

from typing import Any

_HANDS_ON = frozenset({"bitcast", "copy", "reshape"})
_INTEGERS = ("s32s", "s64s", "u32s", "u64s")


def counters_in(body: Any) -> set[int]:
    """The instructions of a loop's body that add a constant to a number which nothing but this takes.

    A loop whose iterations are known before it runs is a repeat on an IPU, which has a counter of its own.

    Args:
        body: the computation, as XLA has it.
    """
    by_id = {instruction.id: instruction for instruction in body.instructions}
    users: dict[int, set[int]] = {}
    for instruction in body.instructions:
        for operand in instruction.operand_ids:
            users.setdefault(operand, set()).add(instruction.id)

    def source(number: int, user: int) -> Any:
        """What an instruction hands on that one other takes; None where something else takes it too."""
        while users[number] == {user}:
            if by_id[number].opcode not in _HANDS_ON:
                return by_id[number]
            number, user = by_id[number].operand_ids[0], number
        return None

    root = by_id[body.root_id]
    found = set()
    for index, number in enumerate(root.operand_ids if root.opcode == "tuple" else ()):
        step = source(number, root.id)
        if step is None or step.opcode != "add" or step.shape.dimensions:
            continue
        counted, added = source(step.operand_ids[0], step.id), source(step.operand_ids[1], step.id)
        if counted is None or added is None or counted.opcode != "get-tuple-element" or counted.tuple_index != index:
            continue
        if added.opcode == "constant" and any(getattr(added.literal, field) for field in _INTEGERS):
            found.add(step.id)
    return found
