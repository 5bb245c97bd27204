"""`tensorflow.python.ipu.optimizers.sharded_optimizer`: places gradients on the shards of their forward ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.frontend.sharding import sharding
from tf_ipu_shim.tf_private.graphs import ops


class ShardedOptimizer(IpuOptimizer):
    """Places the ops of gradients and updates on the shards of their forward ops and variables.

    Training works without it too: compilation puts an unmarked op on the IPU of its neighbours.

    Args:
        optimizer: a `tf.compat.v1.train.Optimizer`.

    Raises:
        ValueError: `optimizer` is a Keras optimizer.

    Source: `tensorflow.python.ipu.optimizers.sharded_optimizer.ShardedOptimizer`.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     with ipu.scopes.ipu_shard(1):
        ...         loss = tf.square(weight)
        ...     train_op = ShardedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1)).minimize(loss)
    """

    def __init__(self, optimizer: Any) -> None:
        super().__init__(optimizer, name="ShardedOptimizer")

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> Any:
        """Gradients, colocated with their ops and marked; see `IpuOptimizer.compute_gradients`."""
        kwargs["colocate_gradients_with_ops"] = True
        pairs = self._opt.compute_gradients(loss, var_list=var_list, **kwargs)
        sharding.propagate_sharding(ops.get_default_graph())
        return pairs

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, and marks the ops that do it; see `IpuOptimizer.apply_gradients`."""
        applied = self._opt.apply_gradients(grads_and_vars, global_step, name)
        sharding.propagate_sharding(ops.get_default_graph())
        return applied
