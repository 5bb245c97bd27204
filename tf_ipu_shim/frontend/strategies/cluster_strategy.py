"""Creates variables and reduces values for the strategy of one worker in a cluster of TensorFlow servers.

Workers may be threads of one process. Each builds its own graph and runs it on a server that the script started.
Initial values, gradients and reductions use TensorFlow's collective ops on the workers' hosts. So they do in
`collective_all_reduce_strategy.CollectiveAllReduceExtended`, which this completes. Checked on TensorFlow 2.15.1 and
2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.strategies import cluster_variables, host_collectives, strategy_extended
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.jobs import job
from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.distribute import (
    collective_all_reduce_strategy,
    collective_util,
    cross_device_ops,
    device_util,
    distribute_lib,
    distribute_utils,
    input_lib,
    numpy_dataset,
    values,
)
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.variables import variable_scope

_ON_READ = variable_scope.VariableSynchronization.ON_READ
_CLASSES = {
    variable_scope.VariableSynchronization.ON_WRITE: cluster_variables.IPUMirroredVariable,
    _ON_READ: cluster_variables.IPUSyncOnReadVariable,
}


_warned_addresses: set[str] = set()


class ClusterExtended(strategy_extended.SingleDevice, collective_all_reduce_strategy.CollectiveAllReduceExtended):
    """The extended part of a strategy of one worker of a cluster, in a graph.

    Args:
        ipu_device: the device of this worker that runs functions.
        variables_on_host: whether variables live on the worker's host instead of its IPU.
    """

    def __init__(
        self, container_strategy: Any, cluster_resolver: Any, ipu_device: str, variables_on_host: bool
    ) -> None:
        self._given_device = ipu_device
        self._variables_on_host = variables_on_host
        options = collective_util.Options(implementation=collective_util.CommunicationImplementation.RING)
        super().__init__(container_strategy, cluster_resolver, options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Estimators copy their configuration; outside of graphs, TensorFlow would make ops on a worker's device."""
        with ops.Graph().as_default():
            return super().__deepcopy__(memo)

    def _initialize_local_devices(self, cluster_resolver: Any, worker_device: str) -> tuple[tuple[str, ...], str]:
        """Collective ops run on the worker's host."""
        return (f"{worker_device}/device:CPU:0",), "CPU"

    def _initialize_multi_worker(self, cluster_resolver: Any) -> None:
        super()._initialize_multi_worker(cluster_resolver)
        self._host_device = device_util.canonicalize(f"{self._worker_device}/device:CPU:0")
        self._ipu_device = device_util.canonicalize(self._given_device, self._host_device)
        self._variable_device = self._host_device if self._variables_on_host else self._ipu_device
        _warn_open_server(self._cluster_spec.task_address(self._task_type, self._task_id))

    @property
    def _collective_keys(self) -> Any:
        """The keys of collective ops, which scripts of TensorFlow 1.15 may replace."""
        return self._keys

    @_collective_keys.setter
    def _collective_keys(self, keys: Any) -> None:
        self._keys = keys
        if hasattr(self, "_host_device"):  # else TensorFlow makes the ops itself, with these keys
            self._cross_device_ops = self._host_cross_device_ops = cross_device_ops.CollectiveAllReduce(
                devices=(self._host_device,),
                group_size=self._num_workers,
                options=self._communication_options,
                collective_keys=keys,
            )

    @property
    def _input_workers(self) -> Any:
        """Keeps elements on the host: the function that consumes them copies them to the IPU."""
        return input_lib.InputWorkers([(self._host_device, (self._host_device,))])

    def _input_workers_with_options(self, options: Any = None) -> Any:
        return self._input_workers

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        colocate_with = kwargs.pop("colocate_with", None)
        if isinstance(colocate_with, numpy_dataset.SingleDevice):
            with ops.device(colocate_with.device):
                return next_creator(**kwargs)
        return distribute_utils.create_mirrored_variable(
            self._container_strategy(),
            lambda **keywords: [self._created(next_creator, keywords, colocate_with)],
            _CLASSES,
            {},
            **kwargs,
        )

    def _created(self, next_creator: Callable[..., Any], kwargs: dict[str, Any], colocate_with: Any) -> Any:
        """This worker's variable, which begins with the value of the first worker's."""
        device = self._variable_device if colocate_with is None else colocate_with.device
        if kwargs.get("synchronization") is _ON_READ:
            device = self._ipu_device  # written in each step, and read by other workers once in a while
        initial_value = self._get_variable_creator_initial_value(0, self._host_device, None, **kwargs)

        def on_host() -> Any:
            with _initialize_on_device(self._host_device):
                return initial_value()

        with ops.device(device):
            return next_creator(**{**kwargs, "initial_value": on_host})

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        replica = distribute_lib.ReplicaContext(self._container_strategy(), self._id_in_cluster)
        with ops.device(self._ipu_device), replica:
            return fn(*args, **kwargs)

    def _update(self, var: Any, fn: Callable[..., Any], args: Any, kwargs: Any, group: bool) -> Any:
        if isinstance(var, values.DistributedVariable):
            return super()._update(var, fn, args, kwargs, group)
        return self._update_non_slot(var.device, fn, (var, *args), kwargs, group)

    def _update_non_slot(self, colocate_with: Any, fn: Callable[..., Any], args: Any, kwargs: Any, group: bool) -> Any:
        (device,) = nest.flatten(colocate_with)  # one of `non_slot_devices`, or where a variable is
        with ops.device(device), distribute_lib.UpdateContext(0):
            result = fn(*args, **kwargs)
        return distribute_utils.update_regroup(self, [result], group)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return self._batch_reduce_to(reduce_op, [(value, destinations)], options)[0]

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> list[Any]:
        mean = host_collectives.is_mean(reduce_op)
        operands = [value for value, _ in value_destination_pairs]
        parts = [value.values[0] if isinstance(value, values.DistributedValues) else value for value in operands]
        if not tracing.in_compilation():
            merged = self._communication_options.merge(options)
            return [tf_distribute.all_reduce(self._cross_device_ops, reduce_op, part, merged) for part in parts]
        if job.current().size != self._num_workers:
            raise errors.UnsupportedError(
                f"Worker {self._id_in_cluster} of {self._num_workers} reduces {parts} in a compiled program, but is no "
                "process of a job: only such workers meet inside a program. Start each worker as a process, with "
                "TF_CONFIG, tf-ipu poprun, mpirun or srun; or reduce outside ipu_compiler.compile."
            )
        return host_collectives.all_reduce(parts, mean)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        return tensor


@contextmanager
def _initialize_on_device(device: str) -> Iterator[None]:
    """Computes a variable's initial value on one device, not on the variable's."""
    graph = ops.get_default_graph()
    group = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=[b"loc:@cpu"]))
    with tf_graphs.attr_scope(graph, {vocabulary.COLOCATION_ATTRIBUTE: group}), ops.device(device):
        yield


def _warn_open_server(address: str) -> None:
    """Warns once about a worker's server: TensorFlow binds it to all interfaces without a password."""
    if address in _warned_addresses:
        return
    _warned_addresses.add(address)
    log.warning(
        f"The tf.distribute.Server of this worker, {address}, listens on all interfaces at port "
        f"{address.rpartition(':')[2]} without a password. Anyone who reaches it runs graphs as you, which can read "
        "and write your files. Use it only if you trust all users and the network. Strategies of TensorFlow 2 in a "
        "job (tf-ipu poprun) have private connections."
    )
