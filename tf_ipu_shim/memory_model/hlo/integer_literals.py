"""Reads small integer constants of an HLO program, such as shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.tf_private.protos import xla_data_pb2

LITERAL_LIMIT = 64
_INTEGERS = (xla_data_pb2.S32, xla_data_pb2.S64)


def integer_elements(by_id: Mapping[int, Any], instruction_id: int) -> list[int]:
    """Returns the elements of an integer constant; empty for other instructions."""
    source = by_id[instruction_id]
    if source.opcode in ("copy", "reshape"):
        return integer_elements(by_id, source.operand_ids[0])
    if source.opcode in ("broadcast", "convert") and source.shape.element_type in _INTEGERS:
        return integer_elements(by_id, source.operand_ids[0]) if math.prod(source.shape.dimensions) == 1 else []
    if source.opcode == "concatenate":  # of the sizes that `tf.shape_n` gives
        parts = [integer_elements(by_id, operand) for operand in source.operand_ids[: LITERAL_LIMIT + 1]]
        return (
            [element for part in parts for element in part] if all(parts) and len(source.shape.dimensions) == 1 else []
        )
    return list(source.literal.s32s or source.literal.s64s) if source.opcode == "constant" else []
