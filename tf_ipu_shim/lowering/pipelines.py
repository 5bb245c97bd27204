"""What the loop of a pipeline, or of gradient accumulation, has to fulfil when it is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import errors_impl

# On the loop over mini-batches: their number, and what it has to be a multiple of.
COUNT_ATTRIBUTE = "_ipu_pipeline_count"
# On a loop in which optimizers accumulate: its iterations and the mini-batches to an update, for each such optimizer.
ACCUMULATION_ATTRIBUTE = "_ipu_accumulation_counts"


def check_counts(functions: Iterable[function_pb2.FunctionDef]) -> None:
    """Checks the numbers of mini-batches of pipelines and of loops that accumulate gradients.

    Args:
        functions: all functions of a program.

    Raises:
        FailedPreconditionError: the schedule cannot run so many; Graphcore's wording.
    """
    for function in functions:
        for node in function.node_def:
            if COUNT_ATTRIBUTE in node.attr:
                count, multiple = node.attr[COUNT_ATTRIBUTE].list.i
                if count % multiple or not count:
                    raise errors_impl.FailedPreconditionError(
                        None,
                        None,
                        f"The number of iterations of the pipeline must be a multiple of {multiple}, but it is "
                        f"{count}. This number might be called `gradient_accumulation_count` or `pipeline_depth` in "
                        "your script. Change it, or use PipelineSchedule.Sequential, which takes any.",
                    )
            if ACCUMULATION_ATTRIBUTE in node.attr:
                numbers = node.attr[ACCUMULATION_ATTRIBUTE].list.i
                for iterations, count in zip(numbers[::2], numbers[1::2]):
                    if iterations % count:
                        raise errors_impl.FailedPreconditionError(
                            None,
                            None,
                            f"Gradient accumulation over {count} mini-batches in a loop of {iterations} iterations: "
                            "the number of iterations must be a multiple of the number of mini-batches "
                            "(`num_mini_batches`), or the last gradients would never be applied.",
                        )
