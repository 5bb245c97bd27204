"""Distributed variables of one cluster worker, and how programs read those on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tf_ipu_shim.frontend.strategies import process_variables
from tf_ipu_shim.tf_private.distribute import values
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import func_graph, ops
from tf_ipu_shim.tf_private.operations import array_ops


@contextlib.contextmanager
def _read_device(variable: Any) -> Iterator[None]:
    """Passes the value of a host variable to a program that a session runs, also to a loop that reads it."""
    graph = ops.get_default_graph()
    if isinstance(graph, func_graph.FuncGraph) and not ops.executing_eagerly_outside_functions():
        if device_lib.DeviceSpec.from_string(variable.device).device_type == "CPU":
            while isinstance(graph, func_graph.FuncGraph):
                graph = graph.outer_graph
            with graph.as_default(), ops.control_dependencies(None), ops.device(variable.device):
                yield
                return
    yield


class _OfEveryStrategy(type(values.DistributedVariable)):  # type: ignore[misc]  # TensorFlow's own metaclass
    """Makes variables of a process of a job instances too: up to SDK 2.5 both strategies have one class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        same = getattr(process_variables, cls.__name__, ())
        return super().__instancecheck__(instance) or isinstance(instance, same)


class IPUMirroredVariable(values.MirroredVariable, metaclass=_OfEveryStrategy):
    """A variable with equal initial values and updates in all workers.

    Args:
        strategy: the strategy in whose scope it was made.
        values: the worker's variable, in a list.
        aggregation: how the values that replicas assign are combined.

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
        """Returns the value on the device that ops are made on, wherever the variable lives."""
        with _read_device(self):
            value = super().value()
        return array_ops.identity(value)

    def _dense_var_to_tensor(self, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        with _read_device(self):
            value = super()._dense_var_to_tensor(dtype, name, as_ref)
        return value


class IPUSyncOnReadVariable(values.SyncOnReadVariable, metaclass=_OfEveryStrategy):
    """A variable that each worker updates separately; a read outside replicas combines all workers' values.

    Args:
        strategy: the strategy in whose scope it was made.
        values: a list with the worker's variable.
        aggregation: whether a read returns their sum or mean.

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
