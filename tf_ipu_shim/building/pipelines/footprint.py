"""What the stages of a traced mini-batch take and keep, for the memory model."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from tf_ipu_shim.lowering import vocabulary

# Weights and constants are in memory anyway; shapes become constants.
_NOT_KEPT = frozenset({"Const", vocabulary.READ_VARIABLE, "VarHandleOp"}) | vocabulary.SHAPE_QUERIES


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Bytes of one mini-batch, for each stage; see `PipelineDescription`."""

    inputs: tuple[int, ...]
    kept: tuple[int, ...]
    checkpoints: tuple[int, ...]


def bytes_of(tensors: Iterable[Any]) -> int:
    """Bytes of tensors; one of unknown size or of no plain type counts nothing."""
    total = 0
    for tensor in {tensor.ref(): tensor for tensor in tensors}.values():
        elements = tensor.shape.num_elements()
        if elements is not None and tensor.dtype.base_dtype.name not in ("resource", "variant", "string"):
            total += elements * tensor.dtype.base_dtype.size
    return total


def footprint(graph: Any, inputs: Sequence[Sequence[Any]], bounds: Sequence[int]) -> Footprint:
    """Looks at a traced mini-batch.

    Args:
        graph: in which it was traced. Ops are in the order in which they were made, and the backward pass comes last.
        inputs: tensors that each stage takes.
        bounds: numbers of ops before the first stage, and after each stage.
    """
    operations = graph.get_operations()
    checkpoints = []
    for begin, end in zip(bounds, bounds[1:]):
        marked = [one for one in operations[begin:end] if one.type == "Identity" and _is_marked(one)]
        checkpoints.append(bytes_of(operation.outputs[0] for operation in marked))
    return Footprint(tuple(map(bytes_of, inputs)), tuple(map(bytes_of, _kept(operations, bounds))), tuple(checkpoints))


def _kept(operations: Sequence[Any], bounds: Sequence[int]) -> list[list[Any]]:
    """For each stage, what its backward ops take of the forward pass."""
    from tf_ipu_shim.lowering.placement import forward_name

    kept: list[list[Any]] = [[] for _ in bounds[1:]]
    if len(operations) == bounds[-1]:
        return kept
    number_of = {operation.name: number for number, operation in enumerate(operations[: bounds[-1]])}
    for operation in operations[bounds[-1] :]:
        forward = number_of.get(forward_name(operation.name) or "")
        for tensor in map(_viewed, operation.inputs):
            made = number_of.get(tensor.op.name)
            if made is not None and tensor.op.type not in _NOT_KEPT:
                # An op that does not say whose gradient it computes is taken for one of the stage that made the value.
                stage = bisect.bisect_right(bounds, made if forward is None else forward) - 1
                kept[min(max(stage, 0), len(kept) - 1)].append(tensor)
    return kept


def _viewed(tensor: Any) -> Any:
    while tensor.op.type in vocabulary.VIEWS:
        tensor = tensor.op.inputs[0]
    return tensor


def _is_marked(operation: Any) -> bool:
    return vocabulary.CHECKPOINT_ATTRIBUTE in operation.node_def.attr
