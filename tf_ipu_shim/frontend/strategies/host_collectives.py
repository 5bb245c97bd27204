"""Differentiable TensorFlow ops for collectives between the processes of a job.

In a graph an operation is two ops on the host: one starts it without waiting, the other waits for all processes. So
processes may start their operations in different orders.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.frontend.validation.results import to_list
from tf_ipu_shim.runtime.jobs import collectives, job, waits
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.distribute import reduce_util
from tf_ipu_shim.tf_private.eager import context, custom_gradient
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops, script_ops
from tf_ipu_shim.tf_private.tensors import tensor_shape

_HOST = "/device:CPU:0"
_ORDERED = "_ipu_exchanges_are_ordered"
_LAST = "_ipu_last_exchange"


def all_reduce(tensors: Sequence[Any], mean: bool, name: str | None = None) -> list[Any]:
    """Sums or averages tensors over all processes, in one exchange.

    Example:
        >>> (total,) = all_reduce([tf.constant([1.0])], mean=False)
        >>> total.numpy().tolist()  # in a job of one process
        [1.0]
    """
    kind = "mean" if mean else "sum"

    @custom_gradient.custom_gradient
    def reduced(*values: Any) -> Any:
        def gradient(*upstream: Any) -> Any:
            return _exchange(kind, upstream, f"{name or kind}_gradient")

        return _exchange(kind, values, name), gradient

    return to_list(reduced(*map(ops.convert_to_tensor, tensors)))


def all_gather(tensor: Any, name: str | None = None) -> Any:
    """Concatenates the tensors of all processes along their first axis, in the order of ranks.

    Example:
        >>> all_gather(tf.constant([1.0])).numpy().tolist()  # in a job of one process
        [1.0]
    """

    @custom_gradient.custom_gradient
    def gathered(value: Any) -> Any:
        size = array_ops.shape(value)[:1]

        def gradient(upstream: Any) -> Any:
            (total,) = _exchange("sum", [upstream], f"{name or 'gather'}_gradient")
            (sizes,) = _exchange("gather", [size], f"{name or 'gather'}_sizes")
            start = math_ops.reduce_sum(sizes[: job.current().rank])
            return total[start : start + size[0]]

        return _exchange("gather", [value], name)[0], gradient

    return gathered(ops.convert_to_tensor(tensor))


def all_stack(tensor: Any, name: str | None = None) -> Any:
    """Returns the tensors of all processes along a new first axis, in the order of ranks.

    Example:
        >>> all_stack(tf.constant(1.0)).numpy().tolist()  # in a job of one process
        [1.0]
    """
    operand = ops.convert_to_tensor(tensor)
    stacked = all_gather(operand[None], name)
    stacked.set_shape([job.current().size, *operand.shape] if operand.shape.rank is not None else None)
    return stacked


def broadcast(tensor: Any, root: int, name: str | None = None) -> Any:
    """Returns the tensor of one process, in all processes.

    Example:
        >>> broadcast(tf.constant([1.0]), 0).numpy().tolist()
        [1.0]
    """
    current_job = job.current()
    root = check_integer("root_rank", root)
    if not 0 <= root < current_job.size:
        raise ValueError(
            f"root_rank must be from 0 to {current_job.size - 1}, the ranks of this job, but {root} was given. Pass "
            "a rank in this range."
        )

    @custom_gradient.custom_gradient
    def same(value: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            (total,) = _exchange("sum", [upstream], f"{name or 'broadcast'}_gradient")
            return total if current_job.rank == root else array_ops.zeros_like(total)

        return _exchange("broadcast", [value], name, root)[0], gradient

    return same(ops.convert_to_tensor(tensor))


def _exchange(kind: str, tensors: Sequence[Any], name: str | None, root: int = 0) -> list[Any]:
    if job.current().size == 1:
        return [array_ops.identity(tensor) for tensor in tensors]
    if context.executing_eagerly():
        arrays = collectives.run(kind, name or kind, [tensor.numpy() for tensor in tensors], root)
        with ops.device(_HOST):
            return [ops.convert_to_tensor(array) for array in arrays]
    key = name or ops.get_default_graph().unique_name(f"host_{kind}")
    line = waits.line_of(sys._getframe())

    def start(*arrays: Any) -> Any:
        return np.int64(collectives.start(kind, key, arrays, root, line))

    def finish(call_id: Any) -> list[Any]:
        return collectives.finish(key, int(call_id))

    with _host_placement():
        # TensorFlow runs stateful ops of a function in order, so all starts are in order.
        started = script_ops.numpy_function(start, list(tensors), dtypes.int64)
        with _order_controls():
            results: list[Any] = to_list(
                script_ops.numpy_function(finish, [started], [tensor.dtype for tensor in tensors], stateful=False)
            )
    for tensor, result in zip(tensors, results):
        shape = tensor.shape
        if kind == "gather" and shape.rank is not None:
            shape = tensor_shape.TensorShape([None]).concatenate(shape[1:])
        result.set_shape(shape)
    return results


@contextmanager
def ordered_exchanges() -> Iterator[None]:
    """Orders the exchanges created inside, which graphs would run in any order.

    A process has few threads that run ops, and each waiting exchange holds one. Processes that all wait for different
    exchanges would have no thread left to begin the others.
    """
    graph = ops.get_default_graph()
    before = getattr(graph, _ORDERED, False)
    setattr(graph, _ORDERED, True)
    try:
        yield
    finally:
        setattr(graph, _ORDERED, before)


@contextmanager
def _order_controls() -> Iterator[None]:
    graph = ops.get_default_graph()
    if not (graph.building_function or getattr(graph, _ORDERED, False)):
        yield  # in a session a script chooses what runs
        return
    last = getattr(graph, _LAST, None)
    context_of_last = tf_graphs.control_flow_context(last) if last is not None else None
    same = last is not None and context_of_last is tf_graphs.control_flow_context(graph)
    op_count = len(graph.get_operations())
    with ops.control_dependencies([last] if same else []):
        yield
    exchange = [op for op in graph.get_operations()[op_count:] if "PyFunc" in op.type]
    setattr(graph, _LAST, exchange[-1] if exchange else last)


def _host_placement() -> Any:
    """Places ops on the host; within an IPU program by a host scope, unless the script has entered one."""
    marked = vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in tf_graphs.attr_scope_map(ops.get_default_graph())
    if tracing.in_compilation() and not marked:
        return scopes.host_scope("host_collective")
    return ops.device(_HOST)


def collective_name(tensor: Any, kind: str) -> str | None:
    """Returns the name of a collective operation that the script does not name: its tensor's.

    Processes may then start several such operations in any order, as long as their graphs name the tensors alike.

    Example:
        >>> collective_name(tf.constant(1.0), "sum") is None
        True
    """
    if not isinstance(tensor, ops.Tensor) or hasattr(tensor, "numpy"):
        return None
    return str(ops.get_default_graph().unique_name(f"{kind}_{tensor.op.name}"))


def is_mean(reduce_op: Any) -> bool:
    """Returns whether a reduction is a mean.

    Example:
        >>> is_mean("MEAN")
        True
    """
    name = reduce_op.name if isinstance(reduce_op, reduce_util.ReduceOp) else str(reduce_op).upper()
    if name not in ("SUM", "MEAN"):
        raise ValueError(f"Unsupported reduce op: {reduce_op}. Use tf.distribute.ReduceOp.SUM or MEAN.")
    return name == "MEAN"
