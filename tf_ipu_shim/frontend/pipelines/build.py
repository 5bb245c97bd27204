"""Builds a pipeline's loops: over mini-batches, then the update, repeated as requested."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops import pipeline_description
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.control_flow import functional_loops
from tf_ipu_shim.frontend.gradients import accumulators
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.pipelines.arguments import AccumulatedOutfeed, PipelineArguments
from tf_ipu_shim.frontend.pipelines.options import PipelineSchedule, RecomputationMode, mini_batch_multiple
from tf_ipu_shim.frontend.pipelines.step import PipelineStep
from tf_ipu_shim.runtime import ignored_options
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.tensors import dtypes


def build_pipeline(arguments: PipelineArguments) -> Any:
    """Checks arguments and builds a pipeline of them; returns the operation that runs it."""
    arguments.check()
    _note_options(arguments)
    if context.executing_eagerly():
        raise RuntimeError(
            "A pipeline cannot run eagerly: it is a program for several IPUs. Call it in a tf.function that "
            "IPUStrategy.run runs, or in a function that ipu_compiler.compile compiles."
        )
    name = arguments.name or "pipeline"

    def execute(counter: Any) -> list[Any]:
        with ops.control_dependencies([_build_execution(arguments, name)]):
            return [counter + 1]

    # A loop even where it runs once: what is in it is traced before anything is called.
    counted = functional_loops.while_loop(
        lambda counter: counter < arguments.repeat_count,
        execute,
        [ops.convert_to_tensor(0, dtypes.int32)],
    )
    return control_flow_ops.group(counted[0].op, name=name)


def _note_options(arguments: PipelineArguments) -> None:
    for name in ("forward_propagation_stages_poplar_options", "backward_propagation_stages_poplar_options"):
        unread = [options.unread for options in getattr(arguments, name) or ()]
        if any(unread):
            ignored_options.note_arguments({f"pipeline({name})": unread})
    note_arguments("pipeline", weight_update_poplar_options=arguments.weight_update_poplar_options)


def _build_execution(arguments: PipelineArguments, name: str) -> Any:
    """Returns all mini-batches of one execution, then the update."""
    step = PipelineStep(arguments, name)
    loop, reduced = _build_mini_batch_loop(step, _collect_outputs(arguments, step), arguments.mini_batches)
    _annotate_loop(loop, arguments, step, name)
    return control_flow_ops.group(loop, *_finish_execution(arguments, step, *reduced))


def _collect_outputs(arguments: PipelineArguments, step: PipelineStep) -> list[_LoopOutput]:
    """The values that outlive a mini-batch: gradients, captured gradients, outfeed elements, hyperparameters."""
    captured = [ops.convert_to_tensor(gradient) for gradient in nest.flatten(step.captured)]
    outfeed_tensors = nest.flatten(step.outfeed) if step.outfeed is not None else []
    hyperparameters = [value for _, value in step.hyperparameters.values()]
    return [
        _LoopOutput(
            step.gradients,
            [
                accumulators.resolve_accumulator_dtype(
                    arguments.gradient_accumulation_dtype, variable, "gradient_accumulation_dtype"
                )
                for variable in step.variables
            ],
            arguments.reduction_method,
        ),
        _LoopOutput(
            captured,
            [gradient.dtype for gradient in captured],
            arguments.reduction_method if arguments.gradient_accumulation_for_captured_grads else None,
        ),
        _LoopOutput(
            outfeed_tensors,
            [_sum_dtype(arguments, tensor) for tensor in outfeed_tensors],
            None
            if arguments.accumulate_outfeed is AccumulatedOutfeed.LAST
            else GradientAccumulationReductionMethod.SUM,
        ),
        _LoopOutput(hyperparameters, [value.dtype for value in hyperparameters], None),
    ]


def _sum_dtype(arguments: PipelineArguments, tensor: Any) -> Any:
    dtype = accumulators.resolve_sum_dtype(arguments.accumulate_outfeed_dtype, tensor, "accumulate_outfeed_dtype")
    if dtype == dtypes.bool and arguments.accumulate_outfeed is not AccumulatedOutfeed.LAST:
        raise ValueError(
            "accumulate_outfeed adds up what the last stage returns, and booleans have no sums. Cast them there, as in "
            "tf.cast(x, tf.int32), or give accumulate_outfeed_dtype a function from tensor to type."
        )
    return dtype


def _build_mini_batch_loop(step: PipelineStep, parts: Sequence[_LoopOutput], count: Any) -> tuple[Any, list[list[Any]]]:
    """Returns the loop over mini-batches, and its results for each part."""

    def mini_batch(counter: Any, *carried: Any) -> list[Any]:
        groups = step.call(counter, *(part.tensors for part in parts))
        if not carried:
            with ops.control_dependencies(groups[0]):
                return [counter + 1]
        before = iter(carried)
        added = [part.add([next(before) for _ in new], new, counter, count) for part, new in zip(parts, groups)]
        return [counter + 1, *(value for values in added for value in values)]

    results = functional_loops.while_loop(
        lambda counter, *_: counter < count,
        mini_batch,
        [ops.convert_to_tensor(0, dtypes.int32), *(zero for part in parts for zero in part.zeros())],
    )
    remaining = iter(results[1:])
    return results[0].op, [[next(remaining) for _ in part.tensors] for part in parts]


def _finish_execution(
    arguments: PipelineArguments, step: PipelineStep, totals: Any, captured: Any, sums: Any, rates: Any
) -> list[Any]:
    """Processes the accumulated values of all mini-batches: the update and the outfeed."""
    done = []
    if step.optimizer is not None:
        by_tag = nest.pack_sequence_as(step.captured, captured)
        with step.holding(rates):
            done.append(step.optimizer.apply(list(zip(totals, step.variables)), by_tag))
        if step.optimizer.captured_gradient_outfeed and captured:
            done.append(step.optimizer.captured_gradient_outfeed.enqueue(by_tag))
    if step.outfeed is not None and arguments.outfeed_queue is not None:
        done.append(arguments.outfeed_queue.enqueue(nest.pack_sequence_as(step.outfeed, sums)))
    return done


@dataclasses.dataclass
class _LoopOutput:
    """Values of a mini-batch that outlive it, and how: reduced over mini-batches, or from the last one."""

    tensors: list[Any]
    dtypes: list[Any]
    method: GradientAccumulationReductionMethod | None

    def zeros(self) -> list[Any]:
        """Initial values of the loop."""
        return [array_ops.zeros(tensor.shape, dtype) for tensor, dtype in zip(self.tensors, self.dtypes)]

    def add(self, before: list[Any], new: list[Any], mini_batch: Any, count: Any) -> list[Any]:
        """Returns the values after mini-batch `number`."""
        if self.method is None:
            return [math_ops.cast(value, total.dtype) for total, value in zip(before, new)]
        return [
            accumulators.add_gradient(total, math_ops.cast(value, total.dtype), mini_batch, count, self.method)
            for total, value in zip(before, new)
        ]


def _annotate_loop(loop: Any, arguments: PipelineArguments, step: PipelineStep, name: str) -> None:
    """Annotates the loop with data for Graphcore's checks and the memory model."""
    schedule = arguments.pipeline_schedule or PipelineSchedule.Grouped
    while loop.type not in vocabulary.LOOPS:
        loop = loop.inputs[0].op
    mode = arguments.recomputation_mode or RecomputationMode.Auto
    count = arguments.gradient_accumulation_count
    description = pipeline_description.PipelineDescription(
        name=name,
        schedule=schedule.name,
        training=arguments.training,
        count=count if isinstance(count, int) else None,
        repeat_count=arguments.repeat_count if isinstance(arguments.repeat_count, int) else None,
        batch_serialization_iterations=arguments.batch_serialization_iterations,
        devices=tuple(tuple(int(ipu) for _, ipu in stage) for stage in arguments.functions),
        recomputation_mode=mode.name,
        input_bytes=step.footprint.inputs,
        kept_bytes=step.footprint.stashed,
        checkpoint_bytes=step.footprint.checkpoints,
        kept_tensors=step.footprint.kept_tensors,
        stashed_tensors=step.footprint.stashed_tensors,
        offload_activations=arguments.offload_activations,
        offload_gradient_accumulation_buffers=arguments.offload_gradient_accumulation_buffers,
        offload_weight_update_variables=arguments.offload_weight_update_variables,
        offload_weights=arguments.offload_weights,
        replicated_optimizer_state_sharding=bool(arguments.replicated_optimizer_state_sharding),
        replicated_weight_sharding=arguments.replicated_weight_sharding,
    )
    tf_graphs.set_attr(loop, vocabulary.PIPELINE_ATTRIBUTE, attr_value_pb2.AttrValue(s=description.to_json().encode()))
    if isinstance(count, int):
        multiple = mini_batch_multiple(schedule, len(arguments.computational_stages), arguments.training)
        tf_graphs.set_attr(
            loop,
            vocabulary.PIPELINE_COUNT_ATTRIBUTE,
            attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=[count, multiple])),
        )
