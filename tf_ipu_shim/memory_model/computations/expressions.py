"""Finds the chains of element-wise ops that the IPU's compiler hands to PopLibs as one expression.

An expression is a tree of ops of at most eight elements whose results have no other consumer. PopLibs generates one
vertex for it, unless an operand is broadcast: then each op is a compute set, as ops of more elements always are.

Source: docs/reference/facts.md, section "Planning formulas".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, dtype_of

SINCE = (2, 2)
"""The first SDK whose tests have expressions."""
MOST_ELEMENTS = 8
_GENERATED = frozenset({"float32", "float16", "int32", "int64", "uint32", "uint64", "bool"})


class Expression(NamedTuple):
    """Element-wise instructions that are one call, by their numbers; the last of them is first."""

    members: tuple[int, ...]
    operands: tuple[int, ...]

    def has_types(self, by_id: Mapping[int, Any]) -> bool:
        """Returns whether PopLibs can generate a vertex with these types."""
        return _GENERATED.issuperset(dtype_of(by_id[each].shape) for each in self.members + self.operands)


def find_expressions(
    by_id: Mapping[int, Any], users: Mapping[int, Sequence[int]], can_be_member: Callable[[Any], bool]
) -> Iterator[Expression]:
    """Yields the expressions of two or more instructions of one computation.

    Args:
        users: the consumers of each instruction.
        can_be_member: whether nothing else is known of an element-wise instruction.
    """

    def is_member(instruction: Any) -> bool:
        small = elements_of(instruction.shape) <= MOST_ELEMENTS and instruction.opcode in ELEMENTWISE
        return small and len(set(users.get(instruction.id, ()))) == 1 and can_be_member(instruction)

    taken: set[int] = set()
    for last in reversed(list(by_id.values())):
        if last.id in taken or not is_member(last) or _is_only_result(last, by_id, users):
            continue
        members, operands = [last.id], list[int]()
        for member in members:  # grows
            for operand_id in by_id[member].operand_ids:
                found = members if is_member(by_id[operand_id]) else operands
                if operand_id not in found:
                    found.append(operand_id)
        taken.update(members)
        if len(members) > 1:
            yield Expression(tuple(members), tuple(operands))


def _is_only_result(instruction: Any, by_id: Mapping[int, Any], users: Mapping[int, Sequence[int]]) -> bool:
    """Returns whether an instruction gives the only result of its computation, possibly as a view."""
    while len(set(users.get(instruction.id, ()))) == 1:
        instruction = by_id[users[instruction.id][0]]
        if instruction.opcode == "tuple":
            return len(instruction.operand_ids) == 1
        if instruction.opcode not in ("bitcast", "copy", "reshape"):
            return False
    return not users.get(instruction.id)
