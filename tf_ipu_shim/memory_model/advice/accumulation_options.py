"""With which options a program accumulates gradients, or would: what the actions that save memory are called by."""

from __future__ import annotations

from collections.abc import Iterator

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.machine.memory import Block
from tf_ipu_shim.memory_model.advice.accumulation import trains
from tf_ipu_shim.memory_model.variables.pipeline_memory import pipelines_in

_KERAS = "gradient_accumulation_steps_per_replica"


def same_update(request: ProgramRequest, parts: int) -> str:
    """How a program that accumulates gradients has the same update of smaller mini-batches: words to add to an action.

    Args:
        request: the program.
        parts: a mini-batch is divided by.

    Returns:
        Such as " with num_mini_batches=8 instead of 4 for the same update"; nothing where the program does not
        accumulate, or the number is not known.
    """
    functions = request.library.values()
    pipelines = [one for one in pipelines_in(functions) if one.training]
    if pipelines:
        counts = {one.count for one in pipelines}
        option = _KERAS if request.is_keras else "gradient_accumulation_count"
    else:
        counts = set(_counts_of_loops(request))
        option = "num_mini_batches"
    if len(counts) != 1 or (count := counts.pop()) is None:
        return ""
    return f" with {option}={count * parts} instead of {count} for the same update"


def _counts_of_loops(request: ProgramRequest) -> Iterator[int]:
    for function in request.library.values():
        for node in function.node_def:
            if vocabulary.ACCUMULATION_ATTRIBUTE in node.attr:
                yield from node.attr[vocabulary.ACCUMULATION_ATTRIBUTE].list.i[1::2]


def may_accumulate(request: ProgramRequest, block: Block) -> bool:
    """Whether a program could be told to accumulate gradients of several mini-batches, of which none is told yet.

    A Keras model can where it trains; an optimizer of TensorFlow 1 where its updates are in a loop over mini-batches.

    Args:
        request: the program.
        block: all that an IPU runs.
    """
    if request.is_keras:
        return trains(block)
    return any(trains(inner) for step in block.steps if step.loops for inner in step.inside)


def how_to_accumulate(request: ProgramRequest, count: int) -> str:
    """What to write in the script to accumulate the gradients of several mini-batches, as far as further options.

    Args:
        request: a program that trains and does not accumulate.
        count: mini-batches to an update.
    """
    if request.is_keras:
        return f"model.set_gradient_accumulation_options({_KERAS}={count}"
    nodes = (node.op for function in request.library.values() for node in function.node_def)
    kind = "CrossReplicaGradientAccumulation" if vocabulary.CROSS_REPLICA_SUM in nodes else "GradientAccumulation"
    return f"{kind}OptimizerV2(..., num_mini_batches={count}"
