"""Imports TensorFlow internals of `tf.distribute`: strategies, distributed variables and datasets."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute import (
    collective_all_reduce_strategy,  # the strategy of several processes
    collective_util,  # options of collectives
    cross_device_ops,  # reductions over processes
    cross_device_utils,  # CollectiveKeys, which is patched
    device_util,  # whole names of devices
    distribute_coordinator,  # the mode that Estimator is told
    distribute_lib,  # what our strategies derive from
    distribute_utils,  # makes and picks values of replicas
    input_lib,  # datasets of replicas
    input_util,  # makes them
    numpy_dataset,  # arrays as datasets
    reduce_util,  # ReduceOp with its conversion from names
    summary_op_util,  # whether summaries are written
    values,  # DistributedVariable and its kinds
)
from tensorflow.python.distribute.cluster_resolver import (
    slurm_cluster_resolver,  # reads SLURM's lists of hosts
)
from tensorflow.python.distribute.cluster_resolver.cluster_resolver import (
    SimpleClusterResolver,  # a cluster as given
)
from tensorflow.python.distribute.v1 import (
    input_lib as input_lib_v1,  # iterators of TensorFlow 1
)
from tensorflow.python.framework import (
    ops,  # the graph, which holds the modes of replicas
)


def all_reduce(cross_device: cross_device_ops.CollectiveAllReduce, operation: Any, value: Any, merged: Any) -> Any:
    """Reduces one value over the processes of a strategy."""
    return cross_device._all_reduce(operation, value, 0, merged)


def in_replica_function() -> bool:
    """Returns whether a replica's function is being traced, also inside `merge_call`."""
    modes = ops.get_default_graph()._distribution_strategy_stack
    return any(mode.replica_context is not None for mode in modes)


def strategy_of(extended: distribute_lib.StrategyExtendedV2) -> Any:
    """Returns the strategy that an extended one belongs to."""
    return extended._container_strategy()


def worker_of(extended: collective_all_reduce_strategy.CollectiveAllReduceExtended) -> int:
    """Returns which worker of its cluster a process is; 0: there is no cluster."""
    return getattr(extended, "_id_in_cluster", 0)


def undistributed(distributed: input_lib.DistributedDataset) -> Any:
    """Returns the dataset that a distributed one was made of."""
    return distributed._original_dataset


def first_of_functions(distributed: input_lib.DistributedDatasetsFromFunction) -> Any:
    """Returns the dataset that a function made for this worker."""
    return distributed._datasets[0]


def loss_scaled_for_estimator(strategy: distribute_lib.StrategyV1) -> Any:
    """Returns a scope whose optimizers divide the loss by the number of workers."""
    return strategy._scale_loss_for_estimator_enabled()


def container_of(value: values.DistributedVariable) -> Any:
    """Returns the distributed variable that one of a replica is part of, or the variable itself."""
    return value._distributed_container() if hasattr(value, "_distributed_container") else value
