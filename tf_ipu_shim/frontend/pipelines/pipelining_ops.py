"""Implements `pipelining_ops.pipeline`: one model over several IPUs, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.pipelines.arguments import PipelineArguments
from tf_ipu_shim.frontend.pipelines.build import build_pipeline
from tf_ipu_shim.frontend.pipelines.optimizer_output import OptimizerFunctionOutput
from tf_ipu_shim.frontend.pipelines.options import (
    PipelineSchedule,
    PipelineStageOptions,
    RecomputationMode,
    recomputation_checkpoint,
)

_SINCE_SDK_1_4 = (
    "gradient_accumulation_count gradient_accumulation_dtype repeat_count batch_serialization_iterations inputs "
    "infeed_queue outfeed_queue optimizer_function device_mapping pipeline_schedule recomputation_mode "
    "forward_propagation_stages_poplar_options backward_propagation_stages_poplar_options "
    "weight_update_poplar_options offload_weight_update_variables replicated_optimizer_state_sharding "
    "offload_activations offload_gradient_accumulation_buffers replicated_weight_sharding offload_weights "
    "continuous_weight_updates outfeed_loss"
)
_SINCE_SDK_2_4 = _SINCE_SDK_1_4 + " accumulate_outfeed accumulate_outfeed_dtype outfeed_mask"


@argument_order(
    1,
    "pipeline_depth repeat_count inputs infeed_queue outfeed_queue optimizer_function device_mapping "
    "pipeline_schedule forward_propagation_stages_poplar_options backward_propagation_stages_poplar_options "
    "weight_update_poplar_options offload_weight_update_variables continuous_weight_updates outfeed_loss name",
    until=(1, 3),
)
@argument_order(1, f"pipeline_depth {_SINCE_SDK_1_4} name", since=(1, 4), until=(2, 0))
@argument_order(25, "name", since=(2, 1), until=(2, 3))
@argument_order(26, "name", since=(2, 4), until=(2, 5))
@argument_order(
    3,
    "gradient_accumulation_for_captured_grads " + " ".join(_SINCE_SDK_2_4.split()[2:]) + " reduction_method name",
    since=(2, 6),
    when=lambda value: isinstance(value, bool),
)
def pipeline(
    computational_stages: Sequence[Any],
    gradient_accumulation_count: Any = None,
    gradient_accumulation_dtype: Any = None,
    repeat_count: int = 1,
    batch_serialization_iterations: int = 1,
    inputs: Sequence[Any] | None = None,
    infeed_queue: Any = None,
    outfeed_queue: Any = None,
    optimizer_function: Callable[..., Any] | None = None,
    device_mapping: Sequence[Any] | None = None,
    pipeline_schedule: PipelineSchedule | None = None,
    recomputation_mode: RecomputationMode | None = None,
    forward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None,
    backward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None,
    weight_update_poplar_options: PipelineStageOptions | None = None,
    offload_weight_update_variables: bool | None = None,
    replicated_optimizer_state_sharding: bool = False,
    offload_activations: bool | None = None,
    offload_gradient_accumulation_buffers: bool | None = None,
    replicated_weight_sharding: bool | None = None,
    offload_weights: bool | None = None,
    continuous_weight_updates: bool = False,
    outfeed_loss: bool = False,
    accumulate_outfeed: bool = False,
    accumulate_outfeed_dtype: Any = None,
    outfeed_mask: Sequence[bool] | None = None,
    reduction_method: Any = GradientAccumulationReductionMethod.SUM,
    name: str | None = None,
    gradient_accumulation_for_captured_grads: bool = True,
    pipeline_depth: Any = None,
) -> Any:
    """Runs a chain of functions as a pipeline, each on its IPU.

    The offload and sharding options, the schedule and the recomputation mode decide the memory of each IPU. They are
    recorded on the program for the memory model (`compiler.loops.pipeline_description.PipelineDescription`).

    Args:
        computational_stages: at least two functions; each receives the previous one's results. The first receives
            `inputs`, then an element of the infeed. A list of functions is one stage whose functions run at the same
            time on separate IPUs. Each receives the previous stage's results, and the next stage receives all their
            results, in order.
        gradient_accumulation_count: mini-batches of one execution, after which the weights are updated once; an
            integer, or a scalar tensor among the program's inputs.
        gradient_accumulation_dtype: dtype of the accumulated gradients, or a function from variable to dtype; the
            variables' dtype by default.
        repeat_count: how often the pipeline is executed.
        batch_serialization_iterations: number of elements of the infeed that a stage processes before the next stage
            begins; an execution consumes `gradient_accumulation_count` times as many. For the schedule `Sequential`
            (which it implies), stages on one IPU (also), and the sum of gradients.
        inputs: tensors for the first stage, the same for every mini-batch.
        infeed_queue: an `IPUInfeedQueue`; an element a mini-batch.
        outfeed_queue: an `IPUOutfeedQueue` for the last stage's results.
        optimizer_function: a function of the last stage's results that returns an `OptimizerFunctionOutput`; for
            training.
        device_mapping: the IPU of each stage; by default stage i is on IPU i. -1 means all IPUs, placed by the stage's
            `ipu_shard` scopes. For a concurrent stage, a list of IPUs.
        pipeline_schedule: a `PipelineSchedule`; `Grouped` when left out. Decides which counts are allowed.
        recomputation_mode: a `RecomputationMode`. Results do not depend on it.
        forward_propagation_stages_poplar_options: options for each stage, with which the cycle model plans its matmuls.
        backward_propagation_stages_poplar_options: options for each stage, for the gradients of its matmuls.
        weight_update_poplar_options: the Poplar options of the weight update.
        offload_weight_update_variables: which memory of the real device holds optimizer state. Results do not depend on
            it.
        replicated_optimizer_state_sharding: whether replicas share optimizer state on the real device; with one replica
            they never do. Results do not depend on it.
        offload_activations: which memory of the real device holds activations. Results do not depend on it.
        offload_gradient_accumulation_buffers: which memory of the real device holds accumulators. Results do not depend
            on it.
        replicated_weight_sharding: the same for weights. Results do not depend on it.
        offload_weights: which memory of the real device holds weights. Results do not depend on it.
        continuous_weight_updates: refused, as by Graphcore.
        outfeed_loss: enqueue the loss instead of the last stage's outputs.
        accumulate_outfeed: accumulate the enqueued values, and enqueue the sum once an execution.
        accumulate_outfeed_dtype: dtype of that sum, or a function from tensor to dtype; the tensor's when left out.
        outfeed_mask: for each output of the last stage, whether it is kept from the outfeed.
        reduction_method: a `GradientAccumulationReductionMethod` or its name.
        name: the name of the operation.
        gradient_accumulation_for_captured_grads: whether captured gradients are accumulated as the others; else the
            optimizer and the captured gradients' outfeed receive the last mini-batch's.
        pipeline_depth: the name of `gradient_accumulation_count` in SDKs up to 2.0.

    Returns:
        The operation that runs the pipeline.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range, or a stage uses a tensor from outside.
        NotImplementedError: an argument that Graphcore's function refuses.
        RuntimeError: it is called eagerly.
        tf.errors.FailedPreconditionError: when run: the schedule cannot run this number of mini-batches.

    Source: `tensorflow.python.ipu.ops.pipelining_ops.pipeline`.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.auto_select_ipus = 2
        >>> config.configure_ipu_system()
        >>> numbers = tf.data.Dataset.range(12).map(lambda x: tf.cast(x, tf.float32))
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(numbers.repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> def model():
        ...     pipeline([lambda x: 2.0 * x, lambda x: x + 1.0], gradient_accumulation_count=4, infeed_queue=infeed,
        ...              outfeed_queue=outfeed)
        >>> strategy.run(tf.function(model))
        >>> outfeed.dequeue().numpy().tolist()
        [1.0, 3.0, 5.0, 7.0]
    """
    arguments = dict(locals())
    del arguments["pipeline_depth"]
    if gradient_accumulation_count is None:
        arguments["gradient_accumulation_count"] = pipeline_depth
    return build_pipeline(PipelineArguments(**arguments))


__all__ = [
    "OptimizerFunctionOutput",
    "PipelineSchedule",
    "PipelineStageOptions",
    "RecomputationMode",
    "pipeline",
    "recomputation_checkpoint",
]
