"""What the stages of a traced mini-batch take and keep, for the memory model."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from tf_ipu_shim.building.pipelines.sources import Sources, source_bytes
from tf_ipu_shim.lowering import vocabulary

# Weights and constants are in memory anyway; shapes become constants.
_NOT_KEPT = frozenset({"Const", vocabulary.READ_VARIABLE, "VarHandleOp"}) | vocabulary.SHAPE_QUERIES
_TAKES_SHAPES = vocabulary.SHAPE_QUERIES | {"OnesLike", "ZerosLike"}


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Bytes of one mini-batch, for each stage; see `PipelineDescription`."""

    inputs: tuple[int, ...]
    kept: tuple[int, ...]
    checkpoints: tuple[int, ...]


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
        checkpoints.append(_bytes(operation.outputs[0] for operation in marked))
    return Footprint(tuple(map(_bytes, inputs)), tuple(map(_bytes, _kept(operations, bounds))), tuple(checkpoints))


def _kept(operations: Sequence[Any], bounds: Sequence[int]) -> list[list[Any]]:
    """For each stage, what its backward ops take of the forward pass."""
    from tf_ipu_shim.lowering.placement import forward_name

    kept: list[list[Any]] = [[] for _ in bounds[1:]]
    if len(operations) == bounds[-1]:
        return kept
    sources = Sources()
    number_of = {operation.name: number for number, operation in enumerate(operations[: bounds[-1]])}
    for operation in (one for one in operations[bounds[-1] :] if one.type not in _TAKES_SHAPES):
        forward = number_of.get(forward_name(operation.name) or "")
        for source in map(sources.of, operation.inputs):
            made = number_of.get(source.outer.op.name)
            if made is not None and source.inner.op.type not in _NOT_KEPT:
                # An op that does not say whose gradient it computes is taken for one of the stage that made the value.
                stage = bisect.bisect_right(bounds, made if forward is None else forward) - 1
                kept[min(max(stage, 0), len(kept) - 1)].append(source.inner)
    return kept


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(map(source_bytes, {tensor.ref(): tensor for tensor in tensors}.values()))


def _is_marked(operation: Any) -> bool:
    return vocabulary.CHECKPOINT_ATTRIBUTE in operation.node_def.attr
