"""`tensorflow.python.ipu.loops`: loops that run on the IPU without returning to Python between iterations."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes, nest

from tf_ipu_shim.frontend.control_flow import functional_loops
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue, element_arguments
from tf_ipu_shim.frontend.gradients import accumulators
from tf_ipu_shim.frontend.tracing import autograph, script_functions
from tf_ipu_shim.frontend.validation import loop_counts
from tf_ipu_shim.frontend.validation.results import to_list
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops


class _Tracing(threading.local):
    """The counters of the loops whose bodies this thread is tracing, the innermost last."""

    def __init__(self) -> None:
        self.counters: list[Any] = []


_tracing = _Tracing()


def current_counter() -> Any:
    """Returns the number of the iteration of the innermost loop, from 0; None outside the bodies of loops."""
    return _tracing.counters[-1] if _tracing.counters else None


@contextlib.contextmanager
def set_counter(counter: Any) -> Iterator[None]:
    """Sets the tensor that `current_counter` returns while the block is traced."""
    _tracing.counters.append(counter)
    try:
        yield
    finally:
        _tracing.counters.pop()


def repeat(
    n: Any,
    body: Callable[..., Any],
    inputs: Sequence[Any] | None = None,
    infeed_queue: IPUInfeedQueue | None = None,
    use_while_v1: bool = True,
) -> Any:
    """Runs a function a number of times. Outside of functions and graphs, its ops run one by one.

    Args:
        n: how many times; an integer or a scalar tensor of integers.
        body: accepts the loop's values and, if there is an infeed, an element of it: a tuple by position, a dict by
            keyword. Returns the loop's values for the next iteration, then operations to run.
        inputs: the loop's values before the first iteration.
        infeed_queue: taken from once an iteration.
        use_while_v1: in a graph for a session, run only the ops on which the loop's values depend, as a loop of
            TensorFlow 1 does. If false, all ops of the body with side effects run, as in a `tf.function`.

    Returns:
        The values after the last iteration: a list, one tensor, or an operation if there are none.

    Raises:
        TypeError: `body` is not a function, does not accept as many arguments, or changes a value's type, or `n` is not
            an integer.
        ValueError: `body` returns operations before tensors or changes a value's shape, or `n` is not a scalar, or more
            than an int32 can count.

    Source: `tensorflow.python.ipu.loops.repeat`.

    Example:
        >>> infeed_queue = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(1.5).repeat())
        >>> step = tf.function(lambda: repeat(10, lambda total, x: total + x, [0.0], infeed_queue))
        >>> float(strategy.run(step))
        15.0
    """
    n = loop_counts.check_trip_count("repeat(n)", n)

    def condition(counter: Any, *_: Any) -> Any:
        return (counter if isinstance(n, int) else math_ops.cast(counter, n.dtype)) < n

    bound = n if isinstance(n, int) else None
    return _build_loop(condition, body, inputs, infeed_queue, use_while_v1, counted=True, bound=bound)


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    inputs: Sequence[Any] | None = None,
    infeed_queue: IPUInfeedQueue | None = None,
    maximum_iterations: int | None = None,
    use_while_v1: bool = True,
) -> Any:
    """Runs a function as long as a condition holds.

    Args:
        condition: accepts the loop's values, returns a scalar boolean.
        body: as in `repeat`.
        inputs: the loop's values before the first iteration.
        infeed_queue: taken from once an iteration.
        maximum_iterations: a bound; gradients through the loop need one.
        use_while_v1: in a graph for a session, run only the ops on which the loop's values depend, as a loop of
            TensorFlow 1 does. If false, all ops of the body with side effects run, as in a `tf.function`.

    Returns:
        As `repeat`.

    Raises:
        TypeError: `body` or `condition` has another number of arguments, `body` changes a value's type, `condition`
            returns no boolean, or the bound is not an integer.
        ValueError: `body` returns operations before tensors or changes a value's shape, `condition` returns no scalar,
            or the bound is more than an int32 can count.

    Source: `tensorflow.python.ipu.loops.while_loop`.

    Example:
        >>> step = tf.function(lambda: while_loop(lambda x: x > 1.0, lambda x: x / 2.0, [1000.0]))
        >>> float(strategy.run(step))
        0.9765625
    """
    values = to_list(inputs)
    _check_arguments("condition", condition, len(values), None)
    if maximum_iterations is not None:
        maximum_iterations = loop_counts.check_int32_trip_count("while_loop(maximum_iterations)", maximum_iterations)
    return _build_loop(condition, body, inputs, infeed_queue, use_while_v1, counted=False, bound=maximum_iterations)


def _build_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    inputs: Sequence[Any] | None,
    infeed_queue: IPUInfeedQueue | None,
    use_while_v1: bool,
    counted: bool,
    bound: int | None,
) -> Any:
    values = [ops.convert_to_tensor(value) for value in to_list(inputs)]
    _check_arguments("body", body, len(values), infeed_queue)
    where = script_functions.describe_function(body)
    body, condition = autograph.convert_like_caller(body), autograph.convert_like_caller(condition)
    needed_only = use_while_v1 and functional_loops.has_dataflow_loops()

    def step(counter: Any, *current: Any) -> list[Any]:
        if needed_only:
            functional_loops.mark_session_semantics()
        positional, keywords = element_arguments(infeed_queue._dequeue()) if infeed_queue is not None else ([], {})
        with set_counter(counter):
            tensors, operations = _sorted_outputs(body(*current, *positional, **keywords))
        _check_types(where, values, tensors)
        _check_shapes(where, values, tensors)
        with ops.control_dependencies(operations):
            carried = [counter + 1, *(array_ops.identity(tensor) for tensor in tensors)]
        if needed_only:
            functional_loops.record_control_inputs(ops.get_default_graph())
        return carried

    def should_continue(counter: Any, *current: Any) -> Any:
        if counted:
            return condition(counter, *current)
        return _scalar_condition(condition(*current))

    counter = ops.convert_to_tensor(0, dtypes.int32)
    with accumulators.trace_loop(bound if counted else None) as traced:
        with functional_loops.prune_loop_bodies(needed_only):
            results = functional_loops.while_loop(should_continue, step, [counter, *values], bound)
    traced(results[0])
    outputs = list(results[1:])
    if not outputs:
        return control_flow_ops.group(results[0])
    return outputs[0] if len(outputs) == 1 else outputs


def _check_types(where: str, values: Sequence[Any], tensors: Sequence[Any]) -> None:
    types, returned = ([tensor.dtype for tensor in side] for side in (values, tensors))
    if returned != types:
        raise TypeError(
            f"Mismatch between input types and output types of the loop: {where} takes {_dtype_names(types)} and "
            f"returns {_dtype_names(returned)}. Return every value of the loop with the type of its input."
        )


def _scalar_condition(answer: Any) -> Any:
    """Checks that a condition returned a scalar boolean."""
    answer = ops.convert_to_tensor(answer)
    if answer.shape.rank:
        raise ValueError(
            f"The condition of an IPU loop returned a tensor of the shape {answer.shape}: it has to be a scalar. "
            "Combine its elements with tf.reduce_any or tf.reduce_all."
        )
    if answer.dtype != dtypes.bool:
        raise TypeError(
            f"The condition of an IPU loop returned a {answer.dtype.name}: it has to be a boolean. Compare it, as "
            "in x != 0."
        )
    return answer


def _sorted_outputs(returned: Any) -> tuple[list[Any], list[Any]]:
    flat = [value for value in nest.flatten(to_list(returned)) if value is not None]
    tensors: list[Any] = []
    operations: list[Any] = []
    for value in flat:
        if isinstance(value, ops.Operation):
            operations.append(value)
        elif operations:
            raise ValueError(
                "IPU loop body must return zero or more Tensor values followed by zero or more Operations; "
                f"{value!r} follows the operation {operations[-1].name}. Return the tensors before the operations."
            )
        else:
            tensors.append(ops.convert_to_tensor(value))
    return tensors, operations


def _check_arguments(label: str, function: Callable[..., Any], count: int, infeed_queue: IPUInfeedQueue | None) -> None:
    if not callable(function):
        raise TypeError(f"The {label} of an IPU loop must be a function, not {function!r}. Pass a function.")
    keywords: dict[str, Any] = {}
    total = count
    if infeed_queue is not None:
        if not isinstance(infeed_queue, IPUInfeedQueue):
            raise TypeError(
                f"infeed_queue must be an IPUInfeedQueue, not a {type(infeed_queue).__name__}. Pass an IPUInfeedQueue."
            )
        positional, keywords = element_arguments(infeed_queue._structure)
        total += len(positional)
    reason = script_functions.explain_call_mismatch(function, total, keywords)
    if reason is not None:
        fed = f", {total - count + len(keywords)} of them from the infeed" if infeed_queue is not None else ""
        fed += f" by the names {', '.join(keywords)}" if keywords else ""
        raise TypeError(
            f"Supplied loop {label} function cannot be called with the specified inputs: "
            f"{script_functions.describe_function(function)} is given {total + len(keywords)} arguments{fed}. {reason}."
            " Change the function's arguments, or the inputs."
        )


def _check_shapes(where: str, inputs: list[Any], returned: list[Any]) -> None:
    """Checks that a loop's values keep their initial shapes, because an IPU's program is made for them."""
    for index, (before, after) in enumerate(zip(inputs, returned)):
        if not after.shape.is_subtype_of(before.shape):
            raise ValueError(
                f"Value {index} of the loop enters the loop with shape {before.shape}, but has shape "
                f"{after.shape} after one iteration, as {where} returns it. On IPUs a value must have the "
                "same shape in each iteration. Begin with a tensor of the largest size, and write a part of "
                "it in each iteration."
            )


def _dtype_names(types: Any) -> str:
    return "[" + ", ".join(kind.name for kind in types) + "]"
