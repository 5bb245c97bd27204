"""Tells which matmuls belong to the forward pass, the backward pass or weight updates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tf_ipu_shim.memory_model.computations.fusions import GRADIENTS_OF_INPUT, Fusion
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, VIEWS, is_gradient

INFERENCE, FORWARD, BACKWARD, UPDATE = 1, 2, 3, 4
"""As Graphcore's trace events number them."""

_FORWARDING = ELEMENTWISE | VIEWS | {"copy", "tuple"}
_PARTS = frozenset({"bitcast", "convert", "copy", "reshape", "reverse", "slice", "transpose"})
_GRADIENTS_OF_KERNEL = frozenset(
    {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"}
)


def matmul_types(
    by_id: Mapping[int, Any], fusions: Mapping[int, Fusion | None], weights: Collection[int] = ()
) -> list[tuple[str, int]]:
    """Returns the pass type of each matmul of one computation.

    A kernel that is transposed for a gradient counts with the forward pass, like the convolution that uses it: both run
    the forward pass's code. A backward matmul with a weight computes the gradient of the tensor that the weight was
    multiplied by.
    """
    turned = {
        instruction_id for instruction_id, fusion in fusions.items() if fusion is not None and "flip-x-y" in fusion.name
    }
    users: dict[int, list[int]] = {}
    for instruction in by_id.values():
        for operand in instruction.operand_ids:
            users.setdefault(operand, []).append(instruction.id)
    found = [(by_id[instruction_id].metadata.op_name, FORWARD) for instruction_id in turned]
    for instruction in by_id.values():
        if instruction.opcode in ("dot", "convolution"):
            found.append((instruction.metadata.op_name, _type(instruction, by_id, users, turned, weights)))
    return found


def _type(
    instruction: Any,
    by_id: Mapping[int, Any],
    users: Mapping[int, list[int]],
    turned: set[int],
    weights: Collection[int],
) -> int:
    op = instruction.metadata
    if op.op_type in _GRADIENTS_OF_KERNEL:
        return UPDATE
    if op.op_type in GRADIENTS_OF_INPUT:
        return FORWARD if turned.intersection(instruction.operand_ids) else BACKWARD
    if not is_gradient(op.op_name):
        return FORWARD
    if any(_is_weight(operand, by_id, weights) for operand in instruction.operand_ids):
        return BACKWARD
    return UPDATE if _reaches_result_elementwise(instruction, by_id, users) else BACKWARD


def _is_weight(instruction_id: int, by_id: Mapping[int, Any], weights: Collection[int]) -> bool:
    """Returns whether an operand is a weight or part of one, possibly transposed or cast."""
    while instruction_id not in weights:
        source = by_id[instruction_id]
        if source.opcode not in _PARTS or not source.operand_ids:
            return False
        instruction_id = source.operand_ids[0]
    return True


def _reaches_result_elementwise(instruction: Any, by_id: Mapping[int, Any], users: Mapping[int, list[int]]) -> bool:
    """Returns whether a matmul reaches the computation's results element by element, as a weight gradient does."""
    seen, stack = {instruction.id}, [instruction.id]
    while stack:
        all_users = users.get(stack.pop(), ())
        if not all_users:
            return True
        for user in all_users:
            if user not in seen and by_id[user].opcode in _FORWARDING:
                seen.add(user)
                stack.append(user)
    return False
