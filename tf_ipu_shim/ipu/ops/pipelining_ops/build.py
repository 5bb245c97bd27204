"""The loops of a pipeline: over mini-batches, then one update; the whole as often as asked."""

from __future__ import annotations

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import dtypes, ops
from tensorflow.python.ops import array_ops, control_flow_ops, math_ops, while_v2
from tensorflow.python.util import nest

from tf_ipu_shim.ipu import accumulators
from tf_ipu_shim.ipu.ops.pipelining_ops.arguments import PipelineArguments
from tf_ipu_shim.ipu.ops.pipelining_ops.options import multiple_of
from tf_ipu_shim.ipu.ops.pipelining_ops.step import PipelineStep
from tf_ipu_shim.lowering import pipelines


def build(arguments: PipelineArguments, name: str) -> Any:
    """Builds a pipeline.

    Args:
        arguments: checked.
        name: of the pipeline.

    Returns:
        The operation that runs it.
    """

    def execute(counter: Any) -> list[Any]:
        with ops.control_dependencies([_execution(arguments, name)]):
            return [counter + 1]

    # A loop even where it runs once: what is in it is traced before anything is called.
    counted = while_v2.while_loop(
        lambda counter: counter < arguments.repeat_count,
        execute,
        [ops.convert_to_tensor(0, dtypes.int32)],
        return_same_structure=True,
    )
    return control_flow_ops.group(counted[0].op, name=name)


def _execution(arguments: PipelineArguments, name: str) -> Any:
    """All mini-batches of one execution, then the update."""
    step = PipelineStep(arguments, name)
    outfeed = nest.flatten(step.outfeed) if step.outfeed is not None else []
    gradients = [
        array_ops.zeros(variable.shape, accumulators.accumulator_dtype(arguments.accumulator_dtype, variable))
        for variable in step.variables
    ]
    sums = [array_ops.zeros(t.shape, arguments.accumulate_outfeed_dtype or t.dtype) for t in outfeed]
    rates = [array_ops.zeros(value.shape, value.dtype) for _, value in step.hyperparameters.values()]

    def mini_batch(counter: Any, *carried: Any) -> list[Any]:
        new_gradients, new_outfeed, new_rates = step.call(outfeed)
        first, second = len(gradients), len(gradients) + len(sums)
        accumulated = [
            accumulators.accumulate(
                total, math_ops.cast(gradient, total.dtype), counter, arguments.count, arguments.reduction_method
            )
            for total, gradient in zip(carried[:first], new_gradients)
        ]
        added = [total + math_ops.cast(new, total.dtype) for total, new in zip(carried[first:second], new_outfeed)]
        if not carried:
            with ops.control_dependencies(new_rates):  # the call itself, where it gives nothing
                return [counter + 1]
        return [counter + 1, *accumulated, *added, *new_rates]

    results = while_v2.while_loop(
        lambda counter, *_: counter < arguments.count,
        mini_batch,
        [ops.convert_to_tensor(0, dtypes.int32), *gradients, *sums, *rates],
        return_same_structure=True,
    )
    _mark(results[0].op, arguments)
    first, second = 1 + len(gradients), 1 + len(gradients) + len(sums)
    done = [results[0].op]
    if step.optimizer is not None:
        for (holder, _), (key, rate) in zip(step.hyperparameters.values(), zip(step.hyperparameters, results[second:])):
            setattr(holder, key[1], rate)
        totals = [math_ops.cast(total, v.dtype.base_dtype) for total, v in zip(results[1:first], step.variables)]
        done.append(step.optimizer.apply(list(zip(totals, step.variables))))
    if step.outfeed is not None and arguments.outfeed_queue is not None:
        sent = nest.pack_sequence_as(step.outfeed, list(results[first:second]))
        done.append(arguments.outfeed_queue.enqueue(sent))
    return control_flow_ops.group(*done)


def _mark(loop: Any, arguments: PipelineArguments) -> None:
    """Leaves on the loop what is checked when it runs, as Graphcore's compiler does."""
    if not isinstance(arguments.count, int) or arguments.schedule is None:
        return
    multiple = multiple_of(arguments.schedule, len(arguments.stages), arguments.training)
    while loop.type not in ("While", "StatelessWhile"):
        loop = loop.inputs[0].op
    loop._set_attr(
        pipelines.COUNT_ATTRIBUTE,
        attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=[arguments.count, multiple])),
    )
