"""Tells in which order tensors lie on their tiles: which keep the layout of a matmul, which one gives another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE

PATH_LIMIT = 32
"""Instructions to look at between a tensor and the matmul whose layout it keeps."""
_NORMS = frozenset({"batch-norm-inference", "batch-norm-training"})
_LAYOUT_PRESERVING = frozenset({"bitcast", "copy", "reshape"})
_ALLOCATED = frozenset({"constant", "convolution", "custom-call", "dot", "get-tuple-element", "parameter"})
"""Opcodes of matmuls, and of variables and arguments, which Poplar allocates for their consumer."""


def mapped_like(instruction: Any, by_id: Mapping[int, Any]) -> Any:
    """Returns the operand whose tile mapping an instruction's result keeps, or None."""
    if instruction.opcode == "get-tuple-element" and not instruction.tuple_index:
        norm = by_id[instruction.operand_ids[0]]
        return by_id[norm.operand_ids[0]] if norm.opcode in _NORMS else None
    if instruction.opcode not in ELEMENTWISE and instruction.opcode not in _LAYOUT_PRESERVING:
        return None
    operands = [by_id[operand_id] for operand_id in instruction.operand_ids]
    size = elements_of(instruction.shape)
    return next(
        (operand for operand in operands if operand.opcode != "broadcast" and elements_of(operand.shape) == size), None
    )


def arranged_operands(product: Any, by_id: Mapping[int, Any]) -> tuple[bool, bool]:
    """Returns for each operand of a matmul or convolution whether it lies in the order that the units want."""
    if product.opcode not in ("convolution", "dot"):
        return False, False
    first, second = (by_id[operand_id] for operand_id in product.operand_ids[:2])
    if product.opcode == "convolution":
        # A kernel's gradient sums over the batch, which is no axis of neighbours.
        sums_channels = product.convolution_dimension_numbers.input_feature_dimension != 0
        return sums_channels and is_arranged(first, by_id), False
    dnums = product.dot_dimension_numbers
    last = [len(operand.shape.dimensions) - 1 for operand in (first, second)]
    sums_last = last[0] in dnums.lhs_contracting_dimensions, last[1] in dnums.rhs_contracting_dimensions
    return sums_last[0] and is_arranged(first, by_id), sums_last[1] and is_arranged(second, by_id)


def is_arranged(instruction: Any, by_id: Mapping[int, Any]) -> bool:
    """Returns whether a tensor has a matmul's layout, with nothing between that gives its elements another order."""
    for _ in range(PATH_LIMIT):
        before = mapped_like(instruction, by_id)
        if before is None:
            return instruction.opcode in _ALLOCATED
        instruction = before
    return False
