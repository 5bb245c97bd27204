"""Finds loop counters that only the loop uses: an IPU's repeat loop does not store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FORWARDING = frozenset({"bitcast", "copy", "reshape"})
_INTEGERS = ("s32s", "s64s", "u32s", "u64s")


def find_counters(body: Any) -> set[int]:
    """Returns the instructions of a loop's body that add a constant to an otherwise unused variable.

    A loop whose iterations are known before it runs is a repeat on an IPU, which has its own counter.
    """
    by_id = {instruction.id: instruction for instruction in body.instructions}
    root = by_id[body.root_id]
    operands = root.operand_ids if root.opcode == "tuple" else ()
    sources = _Sources(by_id)
    steps = ((index, sources.of(operand_id, root.id)) for index, operand_id in enumerate(operands))
    return {step.id for index, step in steps if step is not None and _counts(step, index, sources)}


class _Sources:
    """Finds the operands of a computation's instructions."""

    def __init__(self, by_id: Mapping[int, Any]) -> None:
        self._by_id = by_id
        self._users: dict[int, set[int]] = {}
        for instruction in by_id.values():
            for operand in instruction.operand_ids:
                self._users.setdefault(operand, set()).add(instruction.id)

    def of(self, instruction_id: int, user: int) -> Any:
        """Returns the source that an instruction passes only to one user, else None."""
        while self._users[instruction_id] == {user}:
            if self._by_id[instruction_id].opcode not in _FORWARDING:
                return self._by_id[instruction_id]
            instruction_id, user = self._by_id[instruction_id].operand_ids[0], instruction_id
        return None


def _counts(step: Any, index: int, sources: _Sources) -> bool:
    """Returns whether an instruction adds a constant to the loop variable at the same position."""
    if step.opcode != "add" or step.shape.dimensions:
        return False
    counted, added = (sources.of(operand_id, step.id) for operand_id in step.operand_ids)
    if counted is None or counted.opcode != "get-tuple-element" or counted.tuple_index != index:
        return False
    return added is not None and added.opcode == "constant" and any(getattr(added.literal, name) for name in _INTEGERS)
