"""Measures the inputs and outputs of each stage of a traced mini-batch, for the memory model."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.pipelines.sources import SourceFinder, TensorSource, source_bytes
from tf_ipu_shim.machine.pipelines.stage_memory import stashed

# Weights and constants are in memory anyway; shapes become constants.
_NOT_KEPT = frozenset({"Const", vocabulary.READ_VARIABLE, "VarHandleOp"}) | vocabulary.SHAPE_QUERIES
_TAKES_SHAPES = vocabulary.SHAPE_QUERIES | {"OnesLike", "ZerosLike"}


@dataclasses.dataclass(frozen=True)
class StageFootprint:
    """Bytes and numbers of tensors of one mini-batch, for each stage; see `PipelineDescription`."""

    inputs: tuple[int, ...]
    stashed: tuple[int, ...]
    checkpoints: tuple[int, ...]
    kept_tensors: tuple[int, ...]
    stashed_tensors: tuple[int, ...]


def measure_footprint(graph: Any, bounds: Sequence[int]) -> StageFootprint:
    """Looks at a traced mini-batch."""
    operations = graph.get_operations()
    stages = _StageOps(operations[: bounds[-1]], bounds)
    stashed = stages.kept(operations[bounds[-1] :])
    stashes = [stages.stash(stage, names) for stage, names in enumerate(stashed)]
    return StageFootprint(
        tuple(stages.bytes(inputs) for inputs, _ in stashes),
        tuple(map(stages.bytes, stashed)),
        tuple(stages.bytes(checkpoints) for _, checkpoints in stashes),
        tuple(map(stages.count, stashed)),
        tuple(stages.count(inputs | checkpoints) for inputs, checkpoints in stashes),
    )


class _StageOps:
    """The ops of the stages. Tensors are identified by their names.

    Args:
        bounds: see `measure_footprint`.
    """

    def __init__(self, operations: Sequence[Any], bounds: Sequence[int]) -> None:
        self._operations, self._bounds = operations, bounds
        self._number_of = {operation.name: index for index, operation in enumerate(operations)}
        self._sources = SourceFinder()
        self._found: dict[str, TensorSource] = {}

    def kept(self, gradients: Iterable[Any]) -> list[set[str]]:
        """Returns for each stage the forward values that its backward ops need."""
        from tf_ipu_shim.compiler.placement.placement import forward_name

        stashed: list[set[str]] = [set() for _ in self._bounds[1:]]
        for operation in (gradient for gradient in gradients if gradient.type not in _TAKES_SHAPES):
            forward = self._number_of.get(forward_name(operation.name) or "")
            for name in self._forward_sources(operation.inputs):
                # An op that does not say whose gradient it computes is taken for one of the stage that made the value.
                stage = bisect.bisect_right(self._bounds, self._maker(name) if forward is None else forward) - 1
                stashed[min(max(stage, 0), len(stashed) - 1)].add(name)
        return stashed

    def stash(self, stage: int, stashed_names: Iterable[str]) -> tuple[set[str], set[str]]:
        """Returns the tensors that a stage stashes for recomputation: its inputs and checkpoints."""
        first, end = self._bounds[stage : stage + 2]
        marked = [
            candidate
            for candidate in self._operations[first:end]
            if candidate.type == "Identity" and _is_checkpoint(candidate)
        ]
        return stashed(
            stashed_names,
            self._forward_sources(operation.outputs[0] for operation in marked),
            lambda name: self._forward_sources(self._found[name].outer.op.inputs),
            lambda name: first <= self._maker(name) < end,
        )

    def _maker(self, name: str) -> int:
        return self._number_of[self._found[name].outer.op.name]

    def _forward_sources(self, tensors: Iterable[Any]) -> Iterator[str]:
        """Yields the forward-pass sources of tensors, without weights."""
        for source in map(self._sources.find, tensors):
            if source.outer.op.name in self._number_of and not _is_there_anyway(source.inner.op):
                self._found[source.outer.name] = source
                yield source.outer.name

    def bytes(self, names: Iterable[str]) -> int:
        """Returns the bytes of tensors."""
        return sum(self._sizes(names))

    def count(self, names: Iterable[str]) -> int:
        """Returns how many tensors have bytes."""
        return sum(size > 0 for size in self._sizes(names))

    def _sizes(self, names: Iterable[str]) -> list[int]:
        inner = [self._found[name].inner for name in names]
        return list(map(source_bytes, {tensor.ref(): tensor for tensor in inner}.values()))


def _is_there_anyway(operation: Any) -> bool:
    """Returns whether a value is a variable's or a constant, such as a tensor filled with a constant."""
    if operation.type in _NOT_KEPT:
        return True
    return operation.type == "Fill" and all(_is_there_anyway(tensor.op) for tensor in operation.inputs)


def _is_checkpoint(operation: Any) -> bool:
    return vocabulary.CHECKPOINT_ATTRIBUTE in operation.node_def.attr
