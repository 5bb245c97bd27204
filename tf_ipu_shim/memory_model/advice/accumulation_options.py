"""Names the options that turn on gradient accumulation, for memory-saving advice."""

from __future__ import annotations

from collections.abc import Iterator

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.machine.memory import Block
from tf_ipu_shim.memory_model.advice.accumulation import has_updates
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines

_KERAS = "gradient_accumulation_steps_per_replica"


def same_update_advice(request: ProgramRequest, parts: int) -> str:
    """Returns advice on how to keep the same update with smaller mini-batches."""
    functions = request.library.values()
    pipelines = [find_pipeline for find_pipeline in find_pipelines(functions) if find_pipeline.training]
    if pipelines:
        counts = {pipeline.count for pipeline in pipelines}
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
    """Returns whether gradient accumulation could be turned on for a program.

    A Keras model can if it trains; a TensorFlow 1 optimizer can if its updates are in a loop over mini-batches.
    """
    if request.is_keras:
        return has_updates(block)
    return any(has_updates(inner) for step in block.steps if step.loops for inner in step.inside)


def accumulation_advice(request: ProgramRequest, count: int) -> str:
    """Returns the script's lines that would accumulate gradients of several mini-batches."""
    if request.is_keras:
        return f"model.set_gradient_accumulation_options({_KERAS}={count}"
    nodes = (node.op for function in request.library.values() for node in function.node_def)
    kind = "CrossReplicaGradientAccumulation" if vocabulary.CROSS_REPLICA_SUM in nodes else "GradientAccumulation"
    return f"{kind}OptimizerV2(..., num_mini_batches={count}"
