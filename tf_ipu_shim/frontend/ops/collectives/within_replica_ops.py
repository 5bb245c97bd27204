"""`tensorflow.python.ipu.ops.within_replica_ops`: collectives between the IPUs of one replica, one shard each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.frontend.ops.collectives.all_to_all_op import stack_tensors
from tf_ipu_shim.frontend.ops.collectives.reduce_scatter_op import REDUCTIONS
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops


def all_gather(input_shards: Sequence[Any], axis: int = 0) -> list[Any]:
    """Concatenates the shards on every IPU.

    Args:
        input_shards: a tensor on each IPU, shard i on IPU i.
        axis: the axis of the result along which they are concatenated.

    Returns:
        The whole tensor, once for each IPU.

    Raises:
        ValueError: there are fewer than two shards, one appears twice, or their types, ranks or other sizes differ.
        AssertionError: they do not have this axis.

    Source: `tensorflow.python.ipu.ops.within_replica_ops.all_gather`.

    Example:
        >>> def program():
        ...     with ipu.scopes.ipu_shard(0):
        ...         on_0 = tf.constant([1.0, 2.0])
        ...     with ipu.scopes.ipu_shard(1):
        ...         on_1 = tf.constant([30.0, 40.0])
        ...     return all_gather([on_0, on_1])
        >>> [whole.numpy().tolist() for whole in strategy.run(tf.function(program))]  # on a device of two IPUs
        [[1.0, 2.0, 30.0, 40.0], [1.0, 2.0, 30.0, 40.0]]
    """
    shards = _check_shards(input_shards)
    rank = shards[0].shape.rank
    if not -rank <= axis < rank:
        raise AssertionError(
            f"all_gather along axis {axis} of shards of rank {rank}; expected an axis below the rank. "
            "Choose another axis."
        )
    for shard in shards[1:]:
        for dimension, (size, first) in enumerate(zip(shard.shape.as_list(), shards[0].shape.as_list())):
            if dimension != axis % rank and size != first:
                raise ValueError(
                    f"Expecting tensor dimensions to all have the same size, but for axis {axis}. Dimension "
                    f"{dimension} has {first} and {size} elements; both must be equal. Reshape or pad the "
                    "shards."
                )
    return [_on_ipu(index, lambda: array_ops.concat(shards, axis=axis)) for index in range(len(shards))]


def all_reduce(input_shards: Sequence[Any], op: str) -> list[Any]:
    """Combines the shards, element by element, on every IPU.

    Args:
        input_shards: a tensor on each IPU, all of one shape.
        op: the reduction, such as `COLLECTIVE_OP_ADD`; see `reduce_scatter_op.reduce_scatter`.

    Returns:
        For each IPU the result.

    Raises:
        ValueError: there are fewer than two shards, one appears twice, their types or shapes differ, or the operation
            is unknown.

    Source: `tensorflow.python.ipu.ops.within_replica_ops.all_reduce`.

    Example:
        >>> def program():
        ...     with ipu.scopes.ipu_shard(0):
        ...         on_0 = tf.constant([1.0, 2.0])
        ...     with ipu.scopes.ipu_shard(1):
        ...         on_1 = tf.constant([30.0, 40.0])
        ...     return all_reduce([on_0, on_1], "COLLECTIVE_OP_ADD")
        >>> [total.numpy().tolist() for total in strategy.run(tf.function(program))]  # on a device of two IPUs
        [[31.0, 42.0], [31.0, 42.0]]
    """
    shards, reduce = _check_shards(input_shards), _parse_reduction(op)
    shapes = {tuple(shard.shape.as_list()) for shard in shards}
    if len(shapes) > 1:
        raise ValueError(
            f"The shards of an all_reduce have to be of one shape, not {sorted(shapes)}. Reshape the shards to one "
            "shape."
        )
    return [_on_ipu(index, lambda: reduce(stack_tensors(shards))) for index in range(len(shards))]


def reduce_scatter(input_shards: Sequence[Any], op: str) -> list[Any]:
    """Combines the shards, element by element, and leaves IPU i the i-th part of the result.

    Args:
        input_shards: a tensor of shape `[elements]` on each IPU; shorter ones are filled up with zeros.
        op: the reduction, such as `COLLECTIVE_OP_ADD`; see `reduce_scatter_op.reduce_scatter`.

    Returns:
        For each IPU a tensor of shape `[ceil(elements / IPUs)]`.

    Raises:
        ValueError: there are fewer than two shards, one appears twice or has no or several axes, their types differ, or
            the operation is unknown.

    Source: `tensorflow.python.ipu.ops.within_replica_ops.reduce_scatter`.

    Example:
        >>> def program():
        ...     with ipu.scopes.ipu_shard(0):
        ...         on_0 = tf.constant([1.0, 2.0])
        ...     with ipu.scopes.ipu_shard(1):
        ...         on_1 = tf.constant([30.0, 40.0])
        ...     return reduce_scatter([on_0, on_1], "COLLECTIVE_OP_ADD")
        >>> [part.numpy().tolist() for part in strategy.run(tf.function(program))]  # on a device of two IPUs
        [[31.0], [42.0]]
    """
    shards, reduce = _check_shards(input_shards), _parse_reduction(op)
    if any(shard.shape.rank != 1 for shard in shards):
        raise ValueError(
            f"reduce_scatter takes shards of rank 1, not of shapes {[str(s.shape) for s in shards]}. Flatten them with "
            "tf.reshape."
        )
    sizes = [shard.shape.as_list()[0] for shard in shards]
    part = -(-max(sizes) // len(shards))
    padded = [array_ops.pad(shard, [[0, part * len(shards) - size]]) for shard, size in zip(shards, sizes)]
    return [
        _on_ipu(
            index, lambda at=index: reduce(stack_tensors([tensor[at * part : (at + 1) * part] for tensor in padded]))
        )
        for index in range(len(shards))
    ]


def _on_ipu(ipu: int, make: Any) -> Any:
    with scopes.ipu_shard(ipu):
        return make()


def _check_shards(shards: Sequence[Any]) -> list[Any]:
    if len(shards) < 2:
        raise ValueError(
            f"Collectives within a replica take a tensor for each of at least two IPUs, not {len(shards)}. Pass a list "
            "with a tensor for each IPU."
        )
    tensors = [ops.convert_to_tensor(shard) for shard in shards]
    if len({id(tensor) for tensor in tensors}) < len(tensors):
        raise ValueError(
            "input_shards should not contain any duplicate entries. One tensor is there twice: pass a "
            "separate tensor for each IPU."
        )
    types = [tensor.dtype.name for tensor in tensors]
    if len(set(types)) > 1:
        raise ValueError(f"Expected tensors to all be of the same type, got {types}. Convert them with tf.cast.")
    ranks = [tensor.shape.rank for tensor in tensors]
    if len(set(ranks)) > 1:
        raise ValueError(
            f"Expected tensors to all be of the same rank, got ranks {ranks}. Reshape the tensors to one rank."
        )
    return tensors


def _parse_reduction(op: str) -> Any:
    if op not in REDUCTIONS:
        raise ValueError(f"Unknown collective operation {op!r}. Use one of {', '.join(REDUCTIONS)}.")
    return REDUCTIONS[op]
