"""`gen_popdist_ops`: collectives between the processes of a job, as ops without defaults or gradients.

Example:
    >>> popdist_all_reduce(tf.constant([1.0]), reduce_op="SUM", tensor_name="x").numpy().tolist()
    [1.0]
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.strategies import host_collectives
from tf_ipu_shim.tf_private.graphs import ops


def popdist_all_reduce(tensor: Any, reduce_op: str, tensor_name: str, name: str | None = None) -> Any:
    """Reduces a tensor over all instances.

    Args:
        tensor: a tensor of the same shape in every instance.
        reduce_op: `"SUM"` or `"MEAN"`.
        tensor_name: the same in every instance.
        name: the name of the scope around the ops.

    Returns:
        The reduced tensor.

    Raises:
        ValueError: another reduction.
    """
    with ops.name_scope(name or "PopdistAllReduce"):
        return host_collectives.all_reduce([tensor], host_collectives.is_mean(reduce_op), tensor_name)[0]


def popdist_all_gather(tensor: Any, tensor_name: str, name: str | None = None) -> Any:
    """Returns the tensors of all instances along a new first axis.

    Args:
        tensor: a tensor of the same shape in every instance.
        tensor_name: the same in every instance.
        name: the name of the scope around the ops.

    Returns:
        The tensors in the order of instances, shape [instances, ...].
    """
    with ops.name_scope(name or "PopdistAllGather"):
        return host_collectives.all_stack(tensor, tensor_name)


def popdist_broadcast(tensor: Any, tensor_name: str, name: str | None = None) -> Any:
    """Returns the tensor of the first instance, in all of them.

    Args:
        tensor: a tensor of the same shape in every instance.
        tensor_name: the same in every instance.
        name: the name of the scope around the ops.

    Returns:
        That tensor.
    """
    with ops.name_scope(name or "PopdistBroadcast"):
        return host_collectives.broadcast(tensor, 0, tensor_name)
