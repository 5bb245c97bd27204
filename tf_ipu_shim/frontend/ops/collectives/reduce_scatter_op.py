"""`tensorflow.python.ipu.ops.reduce_scatter_op`: reduces a tensor over replicas and keeps one slice on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.ops.collectives import all_to_all_op
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops

# What Graphcore's collectives can compute, over axis 0 of the stacked tensors.
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "COLLECTIVE_OP_ADD": lambda values: math_ops.reduce_sum(values, axis=0),
    "COLLECTIVE_OP_MUL": lambda values: math_ops.reduce_prod(values, axis=0),
    "COLLECTIVE_OP_MIN": lambda values: math_ops.reduce_min(values, axis=0),
    "COLLECTIVE_OP_MAX": lambda values: math_ops.reduce_max(values, axis=0),
    "COLLECTIVE_OP_LOGICAL_AND": lambda values: math_ops.reduce_all(values, axis=0),
    "COLLECTIVE_OP_LOGICAL_OR": lambda values: math_ops.reduce_any(values, axis=0),
    "COLLECTIVE_OP_SQUARE_ADD": lambda values: math_ops.reduce_sum(values * values, axis=0),
    "COLLECTIVE_OP_MEAN": lambda values: math_ops.reduce_mean(values, axis=0),
}
_LOCAL = "COLLECTIVE_OP_LOCAL"


@argument_order(2, "name", until=(2, 0))
def reduce_scatter(x: Any, replication_factor: int, op: str = "COLLECTIVE_OP_ADD", name: str | None = None) -> Any:
    """Combines a tensor over the replicas and leaves replica r the r-th part of the result.

    Args:
        x: a tensor of shape `[elements]`, or a list of them; filled up with zeros to a multiple of the replicas.
        replication_factor: the number of replicas, or of consecutive replicas in each group.
        op: `COLLECTIVE_OP_` followed by `ADD`, `MEAN`, `MUL`, `MIN`, `MAX`, `LOGICAL_AND`, `LOGICAL_OR`, `SQUARE_ADD`
            or `LOCAL` (each replica keeps a part of its tensor).
        name: the name of the operation.

    Returns:
        A tensor of shape `[ceil(elements / replicas)]`; for a list, a list.

    Raises:
        ValueError: the tensor has no or several axes, the operation is unknown, or the number of replicas is below 1.
        tf.errors.InvalidArgumentError: when run: the replicas cannot be split into groups of this size.

    Source: `tensorflow.python.ipu.ops.reduce_scatter_op.reduce_scatter`.

    Example:
        >>> step = tf.function(lambda: reduce_scatter(tf.constant([1.0, 2.0, 3.0, 4.0]), replication_factor=2))
        >>> strategy.run(step).numpy().tolist()  # on a device of two IPUs: replica 0 has the first half of the sum
        [2.0, 4.0]
    """
    all_to_all_op.check_replication_factor("reduce_scatter", replication_factor)
    if isinstance(x, (list, tuple)):
        return [reduce_scatter(tensor, replication_factor, op=op, name=name) for tensor in x]
    x = ops.convert_to_tensor(x)
    if op != _LOCAL and op not in REDUCTIONS:
        raise ValueError(f"Unknown collective operation {op!r}. Use one of {', '.join([*REDUCTIONS, _LOCAL])}.")
    if x.shape.rank != 1:
        raise ValueError(f"reduce_scatter takes tensors of rank 1, not of shape {x.shape}. Flatten it with tf.reshape.")
    with ops.name_scope(name, "reduce_scatter", [x]):
        (elements,) = x.shape.as_list()
        part = -(-elements // replication_factor)
        padded = array_ops.pad(x, [[0, part * replication_factor - elements]])
        parts = array_ops.reshape(padded, [replication_factor, part])
        if op == _LOCAL:
            return array_ops.gather(parts, all_to_all_op.index_in_group(replication_factor), axis=0)
        everyones = all_to_all_op.all_gather(parts, replication_factor)  # [from, part, elements]
        mine = array_ops.gather(everyones, all_to_all_op.index_in_group(replication_factor), axis=1)
        return REDUCTIONS[op](mine)
