"""Analyses HLO conditionals: the memory of branch results, and which of them are used."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from typing import Any, NamedTuple

from tf_ipu_shim.machine.memory import Block, Mode
from tf_ipu_shim.memory_model.hlo.instructions import shape_bytes
from tf_ipu_shim.memory_model.hlo.trees import Tree, leaves_of, origin

_ALL_ELEMENTS = range(2**31)


class CalledComputation(NamedTuple):
    """A computation that a loop or conditional calls, as a separate block."""

    block: Block
    arguments: list[Tree]
    results: Tree


def place_results(
    block: Block,
    results: Sequence[int],
    branch_results: Sequence[Sequence[int]],
    branches: Sequence[CalledComputation],
    homes: Mapping[int, int],
) -> None:
    """Places a conditional's results if branches return an argument unchanged.

    If all branches do, the result is that argument. If some do, the result is in its memory, and the other branches
    overwrite it, if nothing needs it any more. A variable that branches write to is written to in its place.
    """
    values = block.values
    handed = [_outer_values(leaves, branch) for leaves, branch in zip(branch_results, branches)]
    variables: dict[int, list[int]] = {}
    for leaf in dict.fromkeys(leaf for leaves in branch_results for leaf in leaves):
        variables.setdefault(origin(block, leaf), []).append(leaf)
    overwritten: set[int] = set()
    for index, value in enumerate(results):
        home = homes.get(index, -1)
        result_values = {branch[index] for branch in handed}
        if len(result_values) == 1 and -1 not in result_values:
            values[value] = values[value]._replace(mode=Mode.VIEW, of=tuple(result_values))
            continue
        over = sorted({*(result_values - {-1}), *variables.get(home, ())})
        if over:
            values[value] = values[value]._replace(mode=Mode.IN_PLACE, of=tuple(over), home=home)
            overwritten.update(over)
    for leaves, branch in zip(branch_results, branches):
        for leaf, argument in zip(leaves, leaves_of(branch.arguments[0])):
            if leaf in overwritten:  # the branch may write over it
                branch.block.values[argument] = branch.block.values[argument]._replace(mode=Mode.CARRIED)


def _outer_values(leaves: Sequence[int], branch: CalledComputation) -> list[int]:
    """Returns, for each result of a branch, the outer value it equals; -1 for a computed value."""
    outside = dict(zip(leaves_of(branch.arguments[0]), leaves))
    return [outside.get(origin(branch.block, value), -1) for value in leaves_of(branch.results)]


def arguments_of_size(by_id: Mapping[int, Any], conditional: Any, size: int) -> list[int]:
    """Returns the branch arguments of a given size."""
    operands = [by_id[operand_id] for operand_id in conditional.operand_ids[1:]]
    leaves = dict.fromkeys(leaf for operand in operands if operand.opcode == "tuple" for leaf in operand.operand_ids)
    return [leaf for leaf in leaves if shape_bytes(by_id[leaf].shape) == size]


def used_elements(
    computation: Any, needed: Container[int], stored: Set[tuple[int, int]] = frozenset()
) -> dict[int, Container[int]]:
    """Returns, for each conditional, which elements of its result are used; all if used whole."""
    found: dict[int, Container[int]] = {}
    used_by_branch: dict[int, set[int]] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "conditional":
            used_by_branch[instruction.id] = set()
            parts = instruction.shape.tuple_shapes
            if instruction.id == computation.root_id or not parts or any(part.tuple_shapes for part in parts):
                found[instruction.id] = _ALL_ELEMENTS
        if not used_by_branch or instruction.id not in needed:
            continue
        for operand_id in instruction.operand_ids:
            if operand_id in used_by_branch and instruction.opcode == "get-tuple-element":
                if (operand_id, instruction.tuple_index) not in stored:
                    used_by_branch[operand_id].add(instruction.tuple_index)
            elif operand_id in used_by_branch:
                found[operand_id] = _ALL_ELEMENTS
    return {**used_by_branch, **found}
