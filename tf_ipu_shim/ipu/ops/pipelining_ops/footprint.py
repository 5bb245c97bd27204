"""What the stages of a traced mini-batch take and keep, for the memory model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from tf_ipu_shim.lowering import pipelines

# Weights and constants are in memory anyway.
_NOT_KEPT = frozenset({"Const", "ReadVariableOp", "VarHandleOp"})


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
    used_later = {tensor.ref() for operation in operations[bounds[-1] :] for tensor in operation.inputs}
    kept, checkpoints = [], []
    for begin, end in zip(bounds, bounds[1:]):
        stage = operations[begin:end]
        results = [tensor for operation in stage if operation.type not in _NOT_KEPT for tensor in operation.outputs]
        kept.append(bytes_of(tensor for tensor in results if tensor.ref() in used_later))
        marked = [operation for operation in stage if operation.type == "Identity" and _is_marked(operation)]
        checkpoints.append(bytes_of(operation.outputs[0] for operation in marked))
    return Footprint(tuple(map(bytes_of, inputs)), tuple(kept), tuple(checkpoints))


def _is_marked(operation: Any) -> bool:
    return pipelines.CHECKPOINT_ATTRIBUTE in operation.node_def.attr
