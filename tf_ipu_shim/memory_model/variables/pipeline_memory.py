"""Computes the FIFOs and stashes that a pipeline needs for in-flight mini-batches.

A program has one mini-batch and no FIFO: FIFOs and stashes follow from the schedule. Each slot has the copies
into FIFOs and out of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.cycle_model.sizes import FIFO_WORD, FifoSizes
from tf_ipu_shim.tf_private.protos import function_pb2


@dataclasses.dataclass(frozen=True)
class Stash:
    """A FIFO or stash of one stage on one IPU.

    Args:
        kind: `"fifo"`: values that the backward stage needs; `"stash"`: values from which these are recomputed.
        slots: mini-batches that wait at most.
        tensors: of a mini-batch.
    """

    ipu: int
    owner: str
    kind: str
    bytes: int
    remote: bool
    slots: int
    tensors: int

    @property
    def copies(self) -> FifoSizes:
        """Copies for one mini-batch, in words."""
        return FifoSizes(-(-self.bytes // (self.slots * FIFO_WORD)), self.tensors, self.slots)


def stashes(pipeline: PipelineDescription, recomputes: bool, ipus: Sequence[int]) -> Iterator[Stash]:
    """Yields the FIFOs and stashes of a pipeline.

    A stage that works through several mini-batches before the next one begins has as many in each slot. The bytes of a
    stage on several IPUs are assumed to be spread evenly over them.

    Source: docs/reference/facts.md, section "Recomputation".

    Example:
        >>> description = PipelineDescription(
        ...     name="p", schedule="Grouped", training=True, count=8, repeat_count=1, devices=((0,), (1,)),
        ...     input_bytes=(0, 1024), kept_bytes=(1024, 1024), checkpoint_bytes=(0, 0))
        >>> [(one.ipu, one.kind, one.bytes) for one in stashes(description, recomputes=False, ipus=[0, 1])]
        [(0, 'fifo', 2048)]
    """
    for stage in range(pipeline.stages if pipeline.training else 0):
        slots = (pipeline.fifo_slots(stage) + 1) * pipeline.batch_serialization_iterations - 1
        recomputed = recomputes and stage < pipeline.stages - 1
        size = pipeline.kept_bytes[stage]
        if recomputed:
            size = pipeline.input_bytes[stage] + pipeline.checkpoint_bytes[stage]
        tensors = pipeline.stashed_tensors if recomputed else pipeline.kept_tensors
        devices = pipeline.devices[stage] if min(pipeline.devices[stage]) >= 0 else tuple(ipus)
        if not slots or not size or not devices:
            continue
        name = f"{pipeline.name}: {'stash' if recomputed else 'FIFO'} of stage {stage}, {slots} slots"
        for ipu in devices:
            share = -(-size // len(devices))
            yield Stash(
                ipu,
                name,
                "stash" if recomputed else "fifo",
                slots * share,
                bool(pipeline.offload_activations),
                slots,
                tensors[stage] if tensors else 0,
            )


def find_pipelines(functions: Iterable[function_pb2.FunctionDef]) -> list[PipelineDescription]:
    """Returns the pipelines in some functions."""
    loops = (node for function in functions for node in function.node_def if node.op in vocabulary.LOOPS)
    return [found for found in map(PipelineDescription.of, loops) if found is not None]


def stages_of(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, int]:
    """Returns the forward stage of each op of a stage, by op name."""
    return {
        node.name: node.attr[vocabulary.STAGE_ATTRIBUTE].i
        for function in functions
        for node in function.node_def
        if vocabulary.STAGE_ATTRIBUTE in node.attr
    }
