"""Variables of one worker of a cluster: one value each, and what the workers agree on."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute import values
from tensorflow.python.ops import array_ops


class IPUMirroredVariable(values.MirroredVariable):
    """A variable that begins with the same value in every worker, and is updated alike.

    Args:
        strategy: the strategy in whose scope it was made.
        values: the worker's variable, alone in a list.
        aggregation: how what replicas assign is put together.

    Source: `tensorflow.python.ipu.ipu_multi_worker_strategy.IPUMirroredVariable`.

    Example:
        >>> cluster = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:2"]})
        >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=0)
        >>> with tf.Graph().as_default():
        ...     workers = ipu.ipu_multi_worker_strategy.IPUMultiWorkerStrategyV1(resolver)
        ...     with workers.scope():
        ...         weight = tf.compat.v1.get_variable("weight", initializer=1.0)
        >>> isinstance(weight, IPUMirroredVariable)
        True
    """

    def value(self) -> Any:
        """The value on the device that ops are made on, wherever the variable lives."""
        return array_ops.identity(super().value())


class IPUSyncOnReadVariable(values.SyncOnReadVariable):
    """A variable that each worker updates by itself; a read outside replicas puts all workers' values together.

    Args:
        strategy: the strategy in whose scope it was made.
        values: the worker's variable, alone in a list.
        aggregation: whether a read gives their sum or mean.

    Source: `tensorflow.python.ipu.ipu_multi_worker_strategy.IPUSyncOnReadVariable`.

    Example:
        >>> cluster = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:2"]})
        >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=0)
        >>> with tf.Graph().as_default():
        ...     workers = ipu.ipu_multi_worker_strategy.IPUMultiWorkerStrategyV1(resolver)
        ...     with workers.scope():
        ...         mean = tf.compat.v1.get_variable(
        ...             "mean",
        ...             initializer=1.0,
        ...             synchronization=tf.VariableSynchronization.ON_READ,
        ...             aggregation=tf.VariableAggregation.MEAN,
        ...         )
        >>> isinstance(mean, IPUSyncOnReadVariable)
        True
    """
