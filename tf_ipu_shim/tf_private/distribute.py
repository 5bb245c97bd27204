"""Strategies, distributed variables and datasets."""

from __future__ import annotations

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
