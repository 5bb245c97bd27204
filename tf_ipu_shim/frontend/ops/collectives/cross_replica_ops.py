"""`tensorflow.python.ipu.ops.cross_replica_ops`: sums and means over replicas."""

from __future__ import annotations

import contextlib
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.ops.collectives import uncompiled_collectives
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops


@argument_order(1, "name", until=(2, 0))
def cross_replica_sum(x: Any, replica_group_size: int | str | None = None, name: str | None = None) -> Any:
    """Returns the sum of a tensor over the replicas; each replica gets it.

    In a program with one replica it is the tensor itself, and larger groups are refused as usual.

    Args:
        x: a tensor of the same shape in every replica.
        replica_group_size: the number of consecutive replicas in each sum. All if it is 0 or left out. Up to SDK 1.4
            this was `name`: a string is used as the name.
        name: the name of the operation.

    Raises:
        tf.errors.InvalidArgumentError: when run: the group size does not divide the number of replicas.

    Source: `tensorflow.python.ipu.ops.cross_replica_ops.cross_replica_sum`.

    Example:
        >>> step = tf.function(lambda: cross_replica_sum(tf.constant(3.0)))
        >>> float(strategy.run(step))  # on a device of two IPUs: two replicas
        6.0
    """
    if isinstance(replica_group_size, str):
        replica_group_size, name = None, replica_group_size
    x, size = ops.convert_to_tensor(x), _check_group_size(replica_group_size)

    def build(value: Any) -> Any:
        return plugin.load().ops.ipu_cross_replica_sum(value, replica_group_size=size, name=name)

    return uncompiled_collectives.build_replicated(build, x)


def cross_replica_mean(x: Any, replica_group_size: int | None = None, name: str | None = None) -> Any:
    """Returns the mean of a tensor over the replicas, on each replica.

    Args:
        x: a tensor of a floating-point type, of the same shape in every replica.
        replica_group_size: the number of consecutive replicas in each mean. All if it is 0 or left out.
        name: the name of the operation.

    Raises:
        TypeError: the tensor is of another type.
        tf.errors.InvalidArgumentError: when run: the group size does not divide the number of replicas.

    Source: `tensorflow.python.ipu.ops.cross_replica_ops.cross_replica_mean`.

    Example:
        >>> step = tf.function(lambda: cross_replica_mean(tf.constant(3.0)))
        >>> float(strategy.run(step))  # on a device of two IPUs: two replicas
        3.0
    """
    x = ops.convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise TypeError(
            f"Value passed to cross_replica_mean has DataType {x.dtype.name} not in list of allowed values: float16, "
            "float32. Cast it with tf.cast."
        )
    count = _check_group_size(replica_group_size) or uncompiled_collectives.build_replicated(
        plugin.load().ops.ipu_replication_factor
    )
    # Divided first, as on the IPU: a sum of half-precision values could overflow.
    return cross_replica_sum(x / math_ops.cast(count, x.dtype), replica_group_size=replica_group_size, name=name)


def assume_equal_across_replicas(tensors: Any, inplace: bool = False) -> Any:
    """Declares that tensors are equal in all replicas, which Graphcore's compiler requires before a branch.

    Here each replica branches on its own value. The declaration changes nothing; if it is wrong, results follow the
    actual values.

    Args:
        tensors: a tensor, or a structure of tensors.
        inplace: whether the tensors themselves are declared, instead of copies.

    Returns:
        The tensors, in the same structure.

    Source: `tensorflow.python.ipu.ops.cross_replica_ops.assume_equal_across_replicas`.

    Example:
        >>> step = tf.function(lambda: assume_equal_across_replicas(cross_replica_sum(tf.constant(3.0))))
        >>> float(strategy.run(step))  # on a device of two IPUs: two replicas
        6.0
    """
    return tensors if inplace else nest.map_structure(array_ops.identity, tensors)


def _check_group_size(size: int | None) -> int:
    if size is None:
        return 0
    size = check_integer("replica_group_size", size)
    if size < 0:
        raise ValueError(
            f"replica_group_size is {size}; expected a number of replicas, or 0 for all of them. Leave it out for all."
        )
    return size


@ops.RegisterGradient(vocabulary.CROSS_REPLICA_SUM)
def _cross_replica_sum_gradient(op: Any, gradient: Any) -> Any:
    with replica_scope_of(op):
        return plugin.load().ops.ipu_cross_replica_sum(gradient, replica_group_size=op.get_attr("replica_group_size"))


def replica_scope_of(op: Any) -> Any:
    """Returns a scope with the same replicas as another one: all, or only this instance's."""
    if context.executing_eagerly():
        return contextlib.nullcontext()
    attributes = op.outputs[0].op.node_def.attr  # a tape's own `op` has none that a scope gave
    if vocabulary.WITHIN_INSTANCE_ATTRIBUTE not in attributes:
        return contextlib.nullcontext()
    name = vocabulary.WITHIN_INSTANCE_ATTRIBUTE
    return tf_graphs.attr_scope(ops.get_default_graph(), {name: attributes[name]})
