"""`tensorflow.python.ipu.distributed.host_collective_ops`: collectives between instances of a job, on the host."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.strategies import host_collectives


def allreduce(value: Any, reduce_op: Any, tensor_name: str | None = None) -> Any:
    """Reduces a tensor over all instances.

    Args:
        value: a tensor, of the same shape in every instance.
        reduce_op: `tf.distribute.ReduceOp.SUM` or `MEAN`.
        tensor_name: the same in every instance; its tensor's name when left out.

    Returns:
        The reduced tensor.

    Raises:
        ValueError: another reduction.

    Source: `tensorflow.python.ipu.distributed.host_collective_ops.allreduce`.

    Example:
        >>> allreduce(tf.constant([1.0]), tf.distribute.ReduceOp.MEAN).numpy().tolist()  # in a job of one process
        [1.0]
    """
    name = tensor_name or host_collectives.collective_name(value, "allreduce")
    return host_collectives.all_reduce([value], host_collectives.is_mean(reduce_op), name)[0]


def allgather(value: Any, tensor_name: str | None = None) -> Any:
    """Returns the tensors of all instances along a new first axis.

    Args:
        value: a tensor, of the same shape in every instance.
        tensor_name: the same in every instance; its tensor's name when left out.

    Returns:
        The tensors in the order of instances, shape [instances, ...].

    Raises:
        UnknownError: another instance has a tensor of another shape or type.

    Source: `tensorflow.python.ipu.distributed.host_collective_ops.allgather`.

    Example:
        >>> allgather(tf.constant([1.0])).numpy().tolist()  # in a job of one process
        [[1.0]]
    """
    return host_collectives.all_stack(value, tensor_name or host_collectives.collective_name(value, "allgather"))


def broadcast(value: Any, root_rank: int = 0, tensor_name: str | None = None) -> Any:
    """Returns the tensor of one instance, in all instances.

    Args:
        value: a tensor, of the same shape in every instance.
        root_rank: the instance whose tensor it is.
        tensor_name: the same in every instance; its tensor's name when left out.

    Returns:
        That tensor.

    Raises:
        ValueError: the instance does not exist.

    Source: `tensorflow.python.ipu.distributed.host_collective_ops.broadcast`.

    Example:
        >>> broadcast(tf.constant([1.0])).numpy().tolist()
        [1.0]
    """
    name = tensor_name or host_collectives.collective_name(value, "broadcast")
    return host_collectives.broadcast(value, root_rank, name)


# Their names in SDK 3.0.
all_reduce = allreduce
all_gather = allgather
