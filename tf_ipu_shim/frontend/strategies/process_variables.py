"""Distributed variables of a multi-process job: reads and writes follow `synchronization`.

They behave as `values.MirroredVariable` and `values.SyncOnReadVariable`. Each process has one value, so the variables
stay resource variables, whose handles compiled programs read and write.
"""

from __future__ import annotations

import functools
from typing import Any

from tf_ipu_shim.frontend.strategies import host_collectives
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.runtime import log
from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private.distribute import distribute_lib, reduce_util
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.variables import resource_variable_ops, variable_scope

_SUM = variable_scope.VariableAggregation.SUM
_MEAN = variable_scope.VariableAggregation.MEAN
_NONE = variable_scope.VariableAggregation.NONE
_FIRST = variable_scope.VariableAggregation.ONLY_FIRST_REPLICA

_classes: dict[tuple[bool, type], Any] = {}


class IPUDistributedVariable(resource_variable_ops.BaseResourceVariable):
    """Holds this process's value of a variable that every process of a job has.

    Source: `tensorflow.python.ipu.distributed.popdist_strategy.IPUDistributedVariable`.

    Example:
        >>> with ipu.distributed.popdist_strategy.PopDistStrategy().scope():
        ...     weight = tf.Variable(1.0)
        >>> isinstance(weight, IPUDistributedVariable)
        True
    """

    _extended: Any

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the variable was made."""
        return tf_distribute.strategy_of(self._extended)


class IPUMirroredVariable(IPUDistributedVariable):
    """Holds the same value in every process; `aggregation` reduces the values that replicas assign.

    Source: `tensorflow.python.ipu.distributed.popdist_strategy.IPUMirroredVariable`.

    Example:
        >>> with ipu.distributed.popdist_strategy.PopDistStrategy().scope():
        ...     weight = tf.Variable(1.0)
        >>> isinstance(weight, IPUMirroredVariable)
        True
    """

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Assigns a value, reduced over all replicas if they assign it."""
        return super().assign(self._reduced(value), *args, **kwargs)

    def assign_add(self, delta: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds a value, reduced over all replicas if they add it."""
        return super().assign_add(self._reduced(delta), *args, **kwargs)

    def assign_sub(self, delta: Any, *args: Any, **kwargs: Any) -> Any:
        """Subtracts a value, reduced over all replicas if they subtract it."""
        return super().assign_sub(self._reduced(delta), *args, **kwargs)

    def _reduced(self, value: Any) -> Any:
        if self.aggregation not in (_SUM, _MEAN) or not _is_in_replica() or _is_in_update():
            return value
        tensor = ops.convert_to_tensor(value, self.dtype)
        return self._extended._reduced(reduce_util.ReduceOp.from_variable_aggregation(self.aggregation), [tensor])[0]


class IPUSyncOnReadVariable(IPUDistributedVariable):
    """Holds a value of each process; a read outside of replicas reduces them over all processes.

    Every process has to read it then. A checkpoint holds the value of the process that writes it.

    Source: `tensorflow.python.ipu.distributed.popdist_strategy.IPUSyncOnReadVariable`.

    Example:
        >>> with ipu.distributed.popdist_strategy.PopDistStrategy().scope():
        ...     mean = tf.Variable(
        ...         1.0,
        ...         synchronization=tf.VariableSynchronization.ON_READ,
        ...         aggregation=tf.VariableAggregation.MEAN,
        ...     )
        >>> isinstance(mean, IPUSyncOnReadVariable)
        True
    """

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Assigns a value; outside of replicas a sum is divided among the processes."""
        if self.aggregation == _SUM and self._is_shared():
            value = math_ops.cast(ops.convert_to_tensor(value, self.dtype) / self._extended._job.size, self.dtype)
        return super().assign(value, *args, **kwargs)

    def assign_add(self, delta: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds a value to this process's.

        Raises:
            ValueError: the aggregation is SUM, and the call is outside of replicas.
        """
        self._check_update("assign_add")
        return super().assign_add(delta, *args, **kwargs)

    def assign_sub(self, delta: Any, *args: Any, **kwargs: Any) -> Any:
        """Subtracts a value from this process's.

        Raises:
            ValueError: the aggregation is SUM, and the call is outside of replicas.
        """
        self._check_update("assign_sub")
        return super().assign_sub(delta, *args, **kwargs)

    def sparse_read(self, indices: Any, name: Any = None) -> Any:
        """Reads the given rows."""
        if self._is_shared():
            return array_ops.gather(self.value(), indices, name=name)
        return super().sparse_read(indices, name)

    def gather_nd(self, indices: Any, name: Any = None) -> Any:
        """Reads the given slices."""
        if self._is_shared():
            return array_ops.gather_nd(self.value(), indices, name=name)
        return super().gather_nd(indices, name)

    def _check_update(self, method: str) -> None:
        if self.aggregation == _SUM and self._is_shared():
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when aggregation is set to "
                f"`tf.VariableAggregation.SUM`: variable {self.name} has it. Call `{method}` inside strategy.run, or "
                "assign the whole value."
            )

    def _is_shared(self) -> bool:
        """Returns whether ops made now use the value of all processes."""
        return bool(self._extended._job.size > 1) and not _is_in_replica() and not _is_in_update()

    def _read_variable_op(self, no_copy: bool = False) -> Any:
        value = super()._read_variable_op(no_copy)
        if not self._is_shared() or self.aggregation == _FIRST:
            return value
        if no_copy:  # only checkpoints read so, and a script may write them in one process
            _warn_local_value(self.name)
            return value
        if self.aggregation == _NONE:
            raise ValueError(
                f"Variable {self.name} is read outside of replicas, but its aggregation is NONE; expected SUM, MEAN or "
                "ONLY_FIRST_REPLICA for synchronization ON_READ. Give tf.Variable an aggregation, or read it inside "
                "strategy.run."
            )
        name = f"read of {self.name}" if context.executing_eagerly() else None  # ops of graphs have their own names
        return host_collectives.all_reduce([value], self.aggregation == _MEAN, name)[0]

    def _as_graph_element(self) -> Any:
        return ops.convert_to_tensor(self) if self._is_shared() else super()._as_graph_element()


def with_synchronization(variable: Any, extended: Any) -> Any:
    """Makes a new resource variable one of its `synchronization`'s class."""
    on_read = variable.synchronization == variable_scope.VariableSynchronization.ON_READ
    if on_read and variable.aggregation == _MEAN and not variable.dtype.is_floating:
        raise ValueError(
            f"Variable {variable.name} with synchronization ON_READ and aggregation MEAN: its dtype is "
            f"{variable.dtype.name}; expected a floating-point one. Use SUM, or another dtype."
        )
    variable.__class__ = _variable_class(on_read, type(variable))
    variable._extended = extended
    return variable


def _variable_class(on_read: bool, variable_type: type) -> Any:
    """Our class of that synchronization over the class of variable that TensorFlow made."""
    if (on_read, variable_type) not in _classes:
        behaviour = IPUSyncOnReadVariable if on_read else IPUMirroredVariable
        new_class = type(variable_type)(
            behaviour.__name__, (behaviour, variable_type), {"__module__": behaviour.__module__}
        )
        _classes[on_read, variable_type] = new_class
    return _classes[on_read, variable_type]


def _is_in_replica() -> bool:
    """Returns whether ops made now run in each replica."""
    replica = distribute_lib.get_replica_context()
    return tracing.in_compilation() or (replica is not None and distribute_lib.has_strategy())


def _is_in_update() -> bool:
    """Returns whether ops made now update variables with values that are already reduced."""
    return distribute_lib.get_update_replica_id() is not None


@functools.cache
def _warn_local_value(name: str) -> None:
    log.warning(
        f"A checkpoint of this process has its own value of variable {name}, whose synchronization is ON_READ. For the "
        "value of all processes, read it in each of them and assign what is read before one writes the checkpoint."
    )
