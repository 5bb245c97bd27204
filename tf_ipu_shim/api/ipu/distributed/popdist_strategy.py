"""`tensorflow.python.ipu.distributed.popdist_strategy`: strategy for one instance of a PopRun job."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.ipu.distributed import Average, Sum, rank, size
from tf_ipu_shim.api.ipu.distributed import allreduce as hvd_allreduce
from tf_ipu_shim.api.ipu.distributed import broadcast as hvd_broadcast
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.strategies import keras_extensions, strategy_processes
from tf_ipu_shim.frontend.strategies.process_variables import (
    IPUDistributedVariable,
    IPUMirroredVariable,
    IPUSyncOnReadVariable,
)
from tf_ipu_shim.runtime.jobs import instances

__all__ = [
    "Average",
    "IPUDistributedVariable",
    "IPUMirroredVariable",
    "IPUSyncOnReadVariable",
    "PopDistExtendedV1",
    "PopDistStrategy",
    "Sum",
    "hvd_allreduce",
    "hvd_broadcast",
    "rank",
    "size",
]


class PopDistStrategy(strategy_processes.ProcessStrategy, keras_extensions.KerasExtensions):
    """Trains on the replicas of all instances of a job; without PopRun the process is the only instance.

    Instances are processes of this machine. Variables start with the values of the first one; gradients are reduced
    over the replicas in each instance's program, then over the instances.

    Args:
        ipu_device: the device that stores variables and runs functions.
        add_ipu_cross_replica_reductions: whether a reduction inside a program is one over its replicas.
        enable_dataset_iterators: whether `iter(dataset)` in the scope returns an `IPUIterator`.
        enable_keras_extensions: whether Keras models made in the scope gain the IPU's methods.

    Source: `tensorflow.python.ipu.distributed.popdist_strategy.PopDistStrategy`; up to SDK 2.3 its name is
    `IPUMultiReplicaStrategy`.

    Example:
        >>> strategy = PopDistStrategy()
        >>> config = ipu.config.IPUConfig()
        >>> config.auto_select_ipus = 1
        >>> config = strategy.update_ipu_config(config)
        >>> config.configure_ipu_system()
        >>> with strategy.scope():
        ...     weight = tf.Variable(1.0)
    """

    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        add_ipu_cross_replica_reductions: bool = True,
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        super().__init__(PopDistExtendedV1(self, None, ipu_device, add_ipu_cross_replica_reductions))
        keras_extensions.KerasExtensions.__init__(self, enable_dataset_iterators, enable_keras_extensions)

    @property
    def supports_loss_scaling(self) -> bool:
        """Returns whether a loss scale optimizer may be used: all replicas reduce before they unscale."""
        return True

    def update_ipu_config(self, config: Any) -> Any:
        """Writes the index of this instance and the number of instances to a configuration.

        Args:
            config: an `IPUConfig`, or the result of `create_ipu_config`.

        Returns:
            The same configuration.

        Source: `tensorflow.python.ipu.distributed.popdist_strategy.PopDistStrategy.update_ipu_config`.

        Example:
            >>> config = ipu.config.IPUConfig()
            >>> config.auto_select_ipus = 1
            >>> config = PopDistStrategy().update_ipu_config(config)
            >>> config.configure_ipu_system()
        """
        current_job = self.extended._job
        if hasattr(type(config), "DESCRIPTOR"):  # a protobuf message, which older SDKs have instead of IPUConfig
            config.multi_replica_process_count, config.multi_replica_process_index = current_job.size, current_job.rank
        else:
            distribution = config.experimental.multi_replica_distribution
            distribution.process_count, distribution.process_index = current_job.size, current_job.rank
        return config


class PopDistExtendedV1(strategy_processes.ProcessExtended):
    """The class of `PopDistStrategy.extended`.

    Args:
        container_strategy: the strategy.
        cluster_resolver: no effect: PopRun knows the instances.
        ipu_device: the device that stores variables and runs functions.
        add_ipu_cross_replica_reductions: whether a reduction inside a program is one over its replicas.

    Source: `tensorflow.python.ipu.distributed.popdist_strategy.PopDistExtendedV1`.

    Example:
        >>> PopDistStrategy().extended.worker_devices
        ('/device:IPU:0',)
    """

    def __init__(
        self,
        container_strategy: Any,
        cluster_resolver: Any,
        ipu_device: str,
        add_ipu_cross_replica_reductions: bool,
    ) -> None:
        note_arguments("PopDistExtendedV1", cluster_resolver=cluster_resolver)
        super().__init__(container_strategy, ipu_device, replica_reductions=add_ipu_cross_replica_reductions)

    _programs_span_instances = True

    @property
    def _num_replicas_in_sync(self) -> int:
        return instances.current().total_replicas
