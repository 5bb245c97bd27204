"""Describes a pipeline (stages, schedule, mini-batches) and checks its mini-batch counts.

A pipeline's loop computes a mini-batch in an iteration, and does not show the values that a schedule keeps. A
`PipelineDescription` on it records them.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.machine.pipelines import pipeline_schedule

if TYPE_CHECKING:
    from tf_ipu_shim.compiler.ir.functions import Functions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PipelineDescription:
    """A pipeline as the script asked for it.

    Args:
        schedule: `"Grouped"`, `"Interleaved"` or `"Sequential"`.
        training: whether there are backward stages and an update.
        count: `gradient_accumulation_count`, the executions of a stage for each update; None if only the running
            program knows.
        batch_serialization_iterations: mini-batches that a stage works through before the next stage begins; an
            execution has `count` times as many.
        devices: the IPUs of each stage within the replica; several for a concurrent stage, only -1 for all.
        recomputation_mode: name of a `RecomputationMode`; `"Auto"` when the script did not say.
        input_bytes: for each stage, the inputs from earlier stages and from feeds that recomputation reads again, for
            one mini-batch; all 0 in inference.
        kept_bytes: for each stage, inputs and values of it that its backward stage needs, weights and constants left
            out, for one mini-batch; all 0 in inference.
        checkpoint_bytes: for each stage, values given to `recomputation_checkpoint`, for one mini-batch.
        kept_tensors: for each stage, how many tensors `kept_bytes` counts.
        stashed_tensors: the same for `input_bytes` and `checkpoint_bytes`.
        offload_activations: whether activations are in remote memory; None if the script left it open.
        replicated_optimizer_state_sharding: whether replicas share the variables that only the update uses.
        replicated_weight_sharding: whether replicas share offloaded weights; None if the script left it open.

    Example:
        >>> description = PipelineDescription(
        ...     name="p", schedule="Grouped", training=True, count=8, repeat_count=1, devices=((0,), (1,)),
        ...     input_bytes=(0, 1024), kept_bytes=(1024, 1024), checkpoint_bytes=(0, 0))
        >>> [description.fifo_slots(stage) * description.kept_bytes[stage] for stage in range(description.stages)]
        [2048, 0]
    """

    name: str
    schedule: str
    training: bool
    count: int | None
    repeat_count: int | None
    batch_serialization_iterations: int = 1
    devices: tuple[tuple[int, ...], ...]
    recomputation_mode: str = "Auto"
    input_bytes: tuple[int, ...]
    kept_bytes: tuple[int, ...]
    checkpoint_bytes: tuple[int, ...]
    offload_activations: bool | None = None
    offload_gradient_accumulation_buffers: bool | None = None
    offload_weight_update_variables: bool | None = None
    offload_weights: bool | None = None
    replicated_optimizer_state_sharding: bool = False
    replicated_weight_sharding: bool | None = None
    kept_tensors: tuple[int, ...] = ()
    stashed_tensors: tuple[int, ...] = ()

    @property
    def stages(self) -> int:
        """Number of forward stages."""
        return len(self.devices)

    def fifo_slots(self, stage: int) -> int:
        """Mini-batches whose forward values wait for a stage's backward stage, besides the current one."""
        return pipeline_schedule.fifo_slots(self.schedule, self.stages, stage, self.training)

    def to_json(self) -> str:
        """Serialises the description for `from_json`."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> PipelineDescription:
        """Parses the output of `to_json`."""
        values = json.loads(text)
        for name in ("input_bytes", "kept_bytes", "checkpoint_bytes", "kept_tensors", "stashed_tensors"):
            values[name] = tuple(values[name])
        values["devices"] = tuple(tuple(ipus) for ipus in values["devices"])
        return cls(**values)

    @classmethod
    def of(cls, node: Any) -> PipelineDescription | None:
        """Returns the pipeline of a NodeDef that is its mini-batch loop, else None."""
        if vocabulary.PIPELINE_ATTRIBUTE not in node.attr:
            return None
        return cls.from_json(node.attr[vocabulary.PIPELINE_ATTRIBUTE].s)


def check_counts(functions: Functions) -> None:
    """Checks mini-batch counts of pipelines and of loops that accumulate gradients."""
    for graph in map(functions.__getitem__, functions.reached()):
        if graph.ops.isdisjoint(vocabulary.LOOPS):
            continue
        for node in graph.nodes:
            if node.op in vocabulary.LOOPS:
                _check_pipeline(node.proto.attr)
                _check_accumulation(node.proto.attr)


def _check_pipeline(attributes: Any) -> None:
    if vocabulary.PIPELINE_COUNT_ATTRIBUTE in attributes:
        count, multiple = attributes[vocabulary.PIPELINE_COUNT_ATTRIBUTE].list.i
        if count % multiple or not count:
            raise errors_impl.FailedPreconditionError(
                None,
                None,
                f"The number of iterations of the pipeline must be a multiple of {multiple}, but it is {count}. This "
                "number might be called `gradient_accumulation_count` or `pipeline_depth` in your script. Change it, "
                "or use PipelineSchedule.Sequential, which takes any.",
            )


def _check_accumulation(attributes: Any) -> None:
    if vocabulary.ACCUMULATION_ATTRIBUTE in attributes:
        counts = attributes[vocabulary.ACCUMULATION_ATTRIBUTE].list.i
        for iterations, count in zip(counts[::2], counts[1::2]):
            if iterations % count:
                raise errors_impl.FailedPreconditionError(
                    None,
                    None,
                    f"Detected a gradient accumulation operation with {count} number of mini batches inside a loop "
                    f"with {iterations} iterations. The number of iterations must be a multiple of the number of mini "
                    "batches, or the last gradients would never be applied."
                    " Change one of the two numbers.",
                )
