"""Finds users' Poplar ops (custom calls) in HLO, and describes their compute sets and memory."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.compiler.xla_semantics.user_ops import CALL_TARGET
from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.cycle_model.sizes import UserOpSizes
from tf_ipu_shim.machine.memory import Block, Mode, Value
from tf_ipu_shim.poplar_sdk import bridge
from tf_ipu_shim.poplar_sdk.bridge import OpDescription

FROM_OUTSIDE = frozenset({"argument", "weight", "optimizer_state", "accumulator"})
"""Kinds of values that no op of the program makes."""


def is_user_op(instruction: Any) -> bool:
    """Returns whether an instruction is a user's Poplar op."""
    return bool(instruction.opcode == "custom-call" and instruction.custom_call_target == CALL_TARGET)


def _description_of(instruction: Any) -> OpDescription:
    return bridge.describe(bytes(instruction.backend_config).split(b" ", 2)[2])


def computation_of(instruction: Any) -> Computation | None:
    """Returns the compute sets and exchanges of a user's op; None for other instructions."""
    if not is_user_op(instruction):
        return None
    return Computation("user_op", "", UserOpSizes(_description_of(instruction).steps))


def with_memory(block: Block, instruction: Any, name: str, operands: list[int], results: list[int]) -> list[int]:
    """Maps operands and results of a user's op to tiles; returns the operands of its step, or another's.

    Its allocator maps operands that nothing else has made. Other variables of the op live as long as its step.
    """
    if not is_user_op(instruction):
        return operands
    built = _description_of(instruction)
    for operand, planned in zip(operands, built.inputs):
        source = _source(block, operand)
        value = block.values[source]
        if planned.is_allocated and not value.of and value.kind in FROM_OUTSIDE:
            block.values[source] = value._replace(tiles=planned.tiles)
    for result, planned_output in zip(results, built.outputs):
        value = block.values[result]._replace(tiles=planned_output.tiles)
        if planned_output.alias >= 0:
            value = value._replace(mode=Mode.IN_PLACE, of=(operands[planned_output.alias],))
        block.values[result] = value
    size = sum(each * tiles for each, tiles in built.temporary)
    if not size:
        return operands
    temporary = block.add(Value(size, name, "temporary", tiles=built.temporary))
    block.run(name, (), (temporary,))
    return [*operands, temporary]


def _source(block: Block, operand: int) -> int:
    """Returns the value whose memory an operand views whole."""
    value = block.values[operand]
    while value.mode is Mode.VIEW and len(value.of) == 1:
        operand = value.of[0]
        value = block.values[operand]
    return operand
