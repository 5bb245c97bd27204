"""`tensorflow.python.ipu.ops.all_to_all_op`: all-to-all and all-gather between replicas."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops, replication_ops, uncompiled_collectives
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, gen_array_ops, math_ops


def all_gather(x: Any, replication_factor: int, name: str | None = None) -> Any:
    """Returns the tensors of all replicas; each replica gets them all.

    Args:
        x: a tensor of the same shape in every replica, or a list of them.
        replication_factor: the number of replicas, or of consecutive replicas in each group.
        name: the name of the operation.

    Returns:
        A tensor `[replicas, ...]`; for a list, a list.

    Raises:
        ValueError: the number of replicas is below 1.
        tf.errors.InvalidArgumentError: when run: the replicas cannot be split into groups of this size.

    Source: `tensorflow.python.ipu.ops.all_to_all_op.all_gather`.

    Example:
        >>> step = tf.function(lambda: all_gather(tf.constant([1.0, 2.0]), replication_factor=2))
        >>> strategy.run(step).numpy().tolist()  # on a device of two IPUs: two replicas
        [[1.0, 2.0], [1.0, 2.0]]
    """
    check_replication_factor("all_gather", replication_factor)
    if isinstance(x, (list, tuple)):
        return [all_gather(tensor, replication_factor, name) for tensor in x]

    def build(value: Any) -> Any:
        return plugin.load().ops.ipu_replica_gather(value, replication_factor=replication_factor, name=name)

    return uncompiled_collectives.build_replicated(build, ops.convert_to_tensor(x))


def all_to_all(
    x: Any, split_dimension: int, concat_dimension: int, replication_factor: int, name: str | None = None
) -> Any:
    """Sends the i-th part of a tensor to replica i, and joins the parts received from all replicas.

    Args:
        x: a tensor of the same shape in every replica.
        split_dimension: the axis along which it is cut into as many equal parts as there are replicas.
        concat_dimension: the axis along which the received parts are concatenated, in the order of the replicas.
        replication_factor: the number of replicas, or of consecutive replicas in each group.
        name: the name of the operation.

    Returns:
        A tensor of the size of `x`.

    Raises:
        ValueError: the axis does not exist or is not a multiple of the number of replicas, or that number is below 1.
        tf.errors.InvalidArgumentError: when run: the replicas cannot be split into groups of this size.

    Source: `tensorflow.python.ipu.ops.all_to_all_op.all_to_all`.

    Example:
        >>> step = tf.function(lambda: all_to_all(tf.constant([[1.0], [2.0]]), 0, 1, replication_factor=2))
        >>> strategy.run(step).numpy().tolist()  # on a device of two IPUs: replica 0 has the first row of both
        [[1.0, 1.0]]
    """
    check_replication_factor("all_to_all", replication_factor)
    x = ops.convert_to_tensor(x)
    for argument, axis in (("split_dimension", split_dimension), ("concat_dimension", concat_dimension)):
        if not -len(x.shape) <= axis < len(x.shape):
            raise ValueError(
                f"all_to_all({argument}={axis}): a tensor of the shape {x.shape} does not have this axis; "
                "expected an axis below its rank. Choose another axis."
            )
    size = x.shape.as_list()[split_dimension]
    if size is not None and size % replication_factor:
        raise ValueError(
            f"Axis {split_dimension} of {x.shape} cannot be split into {replication_factor} equal parts, one a replica."
            " Choose an axis whose size is a multiple of the number of replicas."
        )
    with ops.name_scope(name, "all_to_all", [x]):
        parts = stack_tensors(array_ops.split(x, replication_factor, axis=split_dimension))
        received = all_gather(parts, replication_factor)  # [from, to, ...]
        mine = array_ops.gather(received, index_in_group(replication_factor), axis=1)
        return array_ops.concat(gen_array_ops.unpack(mine, num=replication_factor, axis=0), axis=concat_dimension)


def check_replication_factor(label: str, replication_factor: int) -> None:
    """Refuses a number of replicas that no program has.

    Example:
        >>> check_replication_factor("all_gather", 2)
    """
    if check_integer(f"replication_factor of {label}", replication_factor) < 1:
        raise ValueError(
            f"{label}(replication_factor={replication_factor}): expected the number of replicas, 1 or more. Pass 1 or "
            "more."
        )


def index_in_group(replication_factor: int) -> Any:
    """This replica's place among the consecutive replicas that a collective puts together.

    Example:
        >>> step = tf.function(lambda: index_in_group(2))
        >>> int(strategy.run(step))  # of replica 0
        0
    """
    return math_ops.floormod(replication_ops.replication_index(), replication_factor)


def stack_tensors(tensors: Any) -> Any:
    """Puts tensors under a new first axis. TensorFlow's own `stack` has moved between modules."""
    return gen_array_ops.pack(tensors, axis=0)


@ops.RegisterGradient(vocabulary.REPLICA_GATHER)
def _gather_gradient(op: Any, gradient: Any) -> Any:
    """Sums the i-th parts of all gradients in the group for replica i, the reverse of the gather."""
    size = op.get_attr("replication_factor")
    total = cross_replica_ops.cross_replica_sum(gradient, replica_group_size=size)
    return array_ops.gather(total, index_in_group(size), axis=0)
