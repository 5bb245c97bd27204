"""`tensorflow.python.ipu.optimizers.cross_replica_optimizer`: averages gradients over replicas before the update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.tf_private.graphs import ops


def apply_cross_replica_op_single(grad: Any, var: Any) -> tuple[Any, Any]:
    """Averages one gradient over the replicas.

    Args:
        grad: the gradient on this replica, or None.
        var: its variable.

    Returns:
        The averaged gradient and the variable.

    Source: `tensorflow.python.ipu.optimizers.cross_replica_optimizer.apply_cross_replica_op_single`.

    Example:
        >>> weight = tf.Variable(2.0)
        >>> step = tf.function(lambda: apply_cross_replica_op_single(tf.constant(1.5), weight)[0])
        >>> float(strategy.run(step))  # of a single replica
        1.5
    """
    if grad is None:
        return grad, var
    from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops

    grad = ops.convert_to_tensor(grad)  # rows of an embedding have other indices on every replica
    return cross_replica_ops.cross_replica_mean(grad), var


def apply_cross_replica_op(grads_and_vars: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Averages gradients over the replicas.

    Args:
        grads_and_vars: pairs of gradient and variable.

    Returns:
        Such pairs.

    Source: `tensorflow.python.ipu.optimizers.cross_replica_optimizer.apply_cross_replica_op`.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     sgd = tf.compat.v1.train.GradientDescentOptimizer(0.01)
        ...     train_op = sgd.apply_gradients(apply_cross_replica_op(sgd.compute_gradients(tf.square(weight))))
    """
    return [apply_cross_replica_op_single(grad, var) for grad, var in grads_and_vars]


class CrossReplicaOptimizer(IpuOptimizer):
    """Averages gradients over the replicas before it applies them, so that all replicas keep the same weights.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        name: the name of the operations.

    Raises:
        ValueError: `opt` is a Keras optimizer.

    Source: `tensorflow.python.ipu.optimizers.cross_replica_optimizer.CrossReplicaOptimizer`.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     optimizer = CrossReplicaOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.01))
        ...     train_op = optimizer.minimize(tf.square(weight))
    """

    def __init__(self, opt: Any, name: str = "CrossReplicaOptimizer") -> None:
        super().__init__(opt, name=name)

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Averages gradients over the replicas, then applies them; see `IpuOptimizer.apply_gradients`."""
        return self._opt.apply_gradients(apply_cross_replica_op(grads_and_vars), global_step, name)
