"""`tensorflow.python.ipu.ipu_multi_worker_strategy`: strategy for one worker of a cluster, with its own IPU device."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.frontend.strategies import cluster_strategy, strategy_processes
from tf_ipu_shim.frontend.strategies.cluster_variables import IPUMirroredVariable, IPUSyncOnReadVariable
from tf_ipu_shim.runtime.jobs import job
from tf_ipu_shim.tf_private.distribute import SimpleClusterResolver
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops

__all__ = [
    "IPUMirroredVariable",
    "IPUMultiWorkerExtended",
    "IPUMultiWorkerExtendedV1",
    "IPUMultiWorkerStrategy",
    "IPUMultiWorkerStrategyV1",
    "IPUSyncOnReadVariable",
]


class IPUMultiWorkerStrategyV1(strategy_processes.ProcessStrategy):
    """Trains on the IPUs of one worker; the workers are the processes of a job.

    Deprecated since SDK 3.0, in which `PopDistStrategy` replaces it.

    Args:
        cluster_resolver: a `tf.distribute.cluster_resolver.ClusterResolver`.
        ipu_device: the device that runs functions.
        variables_on_host: whether variables live on the host instead of the IPU.

    Raises:
        UnsupportedError: the cluster has several workers, and they were not started as one job.

    Source: `tensorflow.python.ipu.ipu_multi_worker_strategy.IPUMultiWorkerStrategyV1`.

    Example:
        >>> strategy = IPUMultiWorkerStrategyV1(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        >>> with strategy.scope():
        ...     weight = tf.Variable(1.0)
    """

    _collective_key_base = 0  # where TensorFlow's own strategy of several workers begins to number collective ops

    def __init__(
        self, cluster_resolver: Any, ipu_device: str = "/device:IPU:0", variables_on_host: bool = False
    ) -> None:
        strategy_processes.warn_of_deprecation("IPUMultiWorkerStrategyV1")
        extended: Any = IPUMultiWorkerExtendedV1
        if _workers(cluster_resolver) > 1 and not context.executing_eagerly():
            extended = cluster_strategy.ClusterExtended  # a graph, which a session runs on the worker's server
        super().__init__(extended(self, cluster_resolver, ipu_device, variables_on_host))
        self._places = ipu_device, variables_on_host

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Prepares for a session, as estimators do: from here on this is a worker of a cluster, in a graph.

        Args:
            session_config: a `tf.compat.v1.ConfigProto`, to which the other workers are added.
            cluster_spec: the cluster spec of all workers.
            task_type: the type of this worker.
            task_id: the id of this worker.
        """
        if cluster_spec and not isinstance(self.extended, cluster_strategy.ClusterExtended):
            resolver = SimpleClusterResolver(cluster_spec, task_type=task_type, task_id=task_id, rpc_layer="grpc")
            with ops.Graph().as_default():
                self._extended = cluster_strategy.ClusterExtended(self, resolver, *self._places)
            cluster_spec = None  # it knows; told again outside of graphs, TensorFlow would start a second server
        self.extended._configure(session_config, cluster_spec, task_type, task_id)


class IPUMultiWorkerExtendedV1(strategy_processes.ProcessExtended):
    """The class of `IPUMultiWorkerStrategyV1.extended`.

    Args:
        container_strategy: the strategy.
        cluster_resolver: names the cluster, and the worker that this process is; None for the job of this process.
        ipu_device: the device that runs functions.
        variables_on_host: whether variables live on the host instead of the IPU.

    Raises:
        UnsupportedError: the cluster has several workers, and they were not started as one job.

    Source: `tensorflow.python.ipu.ipu_multi_worker_strategy.IPUMultiWorkerExtendedV1`.

    Example:
        >>> resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        >>> IPUMultiWorkerStrategyV1(resolver).extended.worker_devices
        ('/device:IPU:0',)
    """

    def __init__(
        self, container_strategy: Any, cluster_resolver: Any, ipu_device: str, variables_on_host: bool
    ) -> None:
        super().__init__(container_strategy, ipu_device, variables_on_host)
        if cluster_resolver is not None:
            _check_cluster(cluster_resolver)

    @property
    def experimental_between_graph(self) -> bool:
        """Returns whether each worker builds a separate graph: always, as each is a process."""
        return True


def _workers(cluster_resolver: Any) -> int:
    spec = cluster_resolver.cluster_spec() if cluster_resolver is not None else None
    jobs = spec.as_dict() if spec else {}
    return sum(len(jobs.get(kind, ())) for kind in ("chief", "master", "worker"))


def _check_cluster(cluster_resolver: Any) -> None:
    workers = _workers(cluster_resolver)
    current_job = job.current()
    if workers <= 1 and current_job.size == 1:
        return
    rank = cluster_resolver.task_id or 0
    if cluster_resolver.task_type == "worker":
        rank += workers - len(cluster_resolver.cluster_spec().as_dict()["worker"])
    if (workers, rank) != (current_job.size, current_job.rank):
        raise errors.UnsupportedError(
            f"This is worker {rank} of {workers} of the cluster, but process {current_job.rank} of "
            f"{current_job.size} of its job; both must be equal. Give each process its TF_CONFIG, or start "
            "them with tf-ipu poprun, mpirun or srun."
        )


# Graphcore's names for the same up to SDK 2.1 and for TensorFlow 1.
IPUMultiWorkerStrategy = IPUMultiWorkerStrategyV1
IPUMultiWorkerExtended = IPUMultiWorkerExtendedV1
