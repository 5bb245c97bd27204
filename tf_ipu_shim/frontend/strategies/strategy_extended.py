"""Places variables, runs steps and reduces values for all strategies: one IPU device with its host.

Fills in the methods that `distribute_lib.StrategyExtendedV1` leaves to its subclasses, as
`one_device_strategy.OneDeviceExtended` does; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.feeds import ipu_iterators
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.strategies import sized_datasets
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private import variables as tf_variables
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.distribute import (
    device_util,
    distribute_lib,
    distribute_utils,
    input_lib,
    input_lib_v1,
    input_util,
    numpy_dataset,
    reduce_util,
)
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.tensors import indexed_slices

ipu_iterators.install()


def _check_device(strategy: Any, argument: str, device: Any) -> None:
    """A name that TensorFlow refuses would leave the strategy's scope half entered."""
    call = f"{type(strategy).__name__}({argument}={device!r})"
    if not isinstance(device, str):
        raise TypeError(
            f"{call}: expected the name of a device, such as '/device:IPU:0' or '/device:CPU:0'. Pass such a name."
        )
    try:
        device_lib.DeviceSpec.from_string(device)
    except ValueError as error:
        raise ValueError(
            f"{call} is not the name of a device: {error} Use one such as '/device:IPU:0' or '/device:CPU:0'."
        ) from None


class SingleDevice:
    """The extended part of a strategy whose functions run on one IPU device."""

    _ipu_device: str
    _variable_device: str

    @property
    def _device_ordinal(self) -> int:
        return device_lib.DeviceSpec.from_string(self._ipu_device).device_index or 0

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Returns the device that runs functions."""
        return (self._ipu_device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Returns the device that stores variables."""
        return (self._variable_device,)

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """Returns the device of an optimizer's variables that belong to no other variable."""
        return (self._variable_device,)


class DeviceExtended(SingleDevice, distribute_lib.StrategyExtendedV1):
    """The extended part of a strategy whose one worker is an IPU device.

    Args:
        container_strategy: the strategy.
        ipu_device: the device that stores variables and runs functions.
        cpu_device: the device that computes initial values and runs datasets.

    Raises:
        TypeError: a device is not a string.
        ValueError: a device's name cannot be read.

    Source: `tensorflow.python.ipu.ipu_strategy.IPUExtendedV1`.

    Example:
        >>> DeviceExtended(strategy, "/device:IPU:0", "/device:CPU:0").parameter_devices
        ('/device:IPU:0',)
    """

    def __init__(self, container_strategy: Any, ipu_device: str, cpu_device: str) -> None:
        super().__init__(container_strategy)
        _check_device(container_strategy, "ipu_device", ipu_device)
        _check_device(container_strategy, "cpu_device", cpu_device)
        self._ipu_device = self._variable_device = ipu_device
        self._cpu_device = cpu_device
        self._default_device = ipu_device

    def value_container(self, value: Any) -> Any:
        """Returns the distributed value that a value is part of: itself."""
        return value

    def read_var(self, var: Any) -> Any:
        """Returns the value of a variable."""
        return array_ops.identity(var)

    @property
    def experimental_between_graph(self) -> bool:
        """Returns whether each worker builds a separate graph."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Returns whether this worker initialises variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Returns whether this worker writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Returns whether this worker writes summaries."""
        return True

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1

    @property
    def _global_batch_size(self) -> bool:
        return True

    @property
    def _support_per_replica_values(self) -> bool:
        return False

    def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
        return replica_id_in_sync_group

    def _in_multi_worker_mode(self) -> bool:
        return False

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        if tf_variables.strategy_of(colocate_with_variable, self) is None:
            raise ValueError(
                f"Variable {colocate_with_variable.name!r} was made outside the scope of the IPUStrategy that updates "
                "it, so that it is not on the IPU. Make variables, models and optimizers in the scope: "
                "`with strategy.scope(): ...`."
            )
        distribute_utils.validate_colocate(colocate_with_variable, self)

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        colocate_with = kwargs.pop("colocate_with", None)
        kwargs["initial_value"] = self._initial_value_on_host(kwargs.get("initial_value"))
        scopes.ensure_device(self._ipu_device)
        if colocate_with is None:
            with ops.device(self._ipu_device):
                return next_creator(**kwargs)
        if isinstance(colocate_with, numpy_dataset.SingleDevice):
            with ops.device(colocate_with.device):
                return next_creator(**kwargs)
        with ops.colocate_with(colocate_with):
            return next_creator(**kwargs)

    def _initial_value_on_host(self, initial_value: Any) -> Any:
        """Returns an initialiser that runs on the host: it is outside of the program, and XLA need not support it."""
        if not callable(initial_value):
            return initial_value

        def on_host(*args: Any, **kwargs: Any) -> Any:
            with device_scope(self._cpu_device):
                return initial_value(*args, **kwargs)

        return on_host

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with ops.device(self._ipu_device), distribute_lib.ReplicaContext(self._container_strategy(), 0):
            return fn(*args, **kwargs)

    def _update(self, var: Any, fn: Callable[..., Any], args: Any, kwargs: Any, group: bool) -> Any:
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def _update_non_slot(self, colocate_with: Any, fn: Callable[..., Any], args: Any, kwargs: Any, group: bool) -> Any:
        with ops.device(self._ipu_device), distribute_lib.UpdateContext(self._ipu_device):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return reduce_on_device(reduce_op, value)

    def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, options: Any) -> Any:
        return value

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        return tensor

    @property
    def _input_workers(self) -> Any:
        """Keeps elements on the host: the function that consumes them copies them to the IPU."""
        return input_lib.InputWorkers([(self._cpu_device, (self._cpu_device,))])

    def _make_dataset_iterator(self, dataset: Any) -> Any:
        return input_lib_v1.DatasetIterator(dataset, self._input_workers, self._container_strategy())

    def _make_input_fn_iterator(self, input_fn: Any, replication_mode: Any = None) -> Any:
        return input_lib_v1.InputFunctionIterator(
            input_fn, self._input_workers, [distribute_lib.InputContext()], self._container_strategy()
        )

    def _experimental_make_numpy_dataset(self, numpy_input: Any, session: Any) -> Any:
        return numpy_dataset.one_host_numpy_dataset(numpy_input, numpy_dataset.SingleDevice(self._cpu_device), session)

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        if not isinstance(dataset, dataset_ops.DatasetV2):
            raise TypeError(
                f"A strategy can only distribute a tf.data.Dataset, not a {type(dataset).__name__}. "
                "Pass a tf.data.Dataset."
            )
        return sized_datasets.add_length(
            input_util.get_distributed_dataset(
                dataset, self._input_workers, self._container_strategy(), options=options
            )
        )

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        return self._from_function(dataset_fn, distribute_lib.InputContext(), options)

    def _from_function(self, dataset_fn: Any, this: Any, options: Any) -> Any:
        """Returns the datasets of the process that `this`, an `InputContext`, describes."""
        return sized_datasets.add_length(
            input_util.get_distributed_datasets_from_function(
                dataset_fn, self._input_workers, [this], self._container_strategy(), options
            )
        )

    def _experimental_distribute_values_from_function(self, value_fn: Any) -> Any:
        return value_fn(distribute_lib.ValueContext())


@contextmanager
def device_scope(device: str) -> Iterator[None]:
    """Works like `tf.device`, and also places the initialiser of a graph's variable on its device."""
    graph = ops.get_default_graph()
    colocated = vocabulary.COLOCATION_ATTRIBUTE in tf_graphs.attr_scope_map(graph)
    with (
        tf_graphs.attr_scope(graph, {vocabulary.COLOCATION_ATTRIBUTE: None}) if colocated else nullcontext(),
        ops.device(device),
    ):
        yield


def reduce_on_device(reduce_op: Any, value: Any) -> Any:
    """Reduces a value over the replicas of the current program; elsewhere the value is unchanged."""
    if not is_on_device():
        return value
    if reduce_op not in (reduce_util.ReduceOp.SUM, reduce_util.ReduceOp.MEAN):
        raise ValueError(f"Unsupported reduce op: {reduce_op}. Use tf.distribute.ReduceOp.SUM or MEAN.")
    summed = reduce_op == reduce_util.ReduceOp.SUM
    reduction: Any = cross_replica_ops.cross_replica_sum if summed else cross_replica_ops.cross_replica_mean

    def reduced(part: Any) -> Any:
        return reduction(ops.convert_to_tensor(part) if isinstance(part, indexed_slices.IndexedSlices) else part)

    return nest.map_structure(reduced, value)


def is_on_device() -> bool:
    """Returns whether ops that are made now are part of a program, on an IPU.

    Example:
        >>> is_on_device()  # outside a tf.function ops run at once
        False
    """
    return not context.executing_eagerly() and _is_ipu_device(device_util.current())


def is_in_program() -> bool:
    """Returns whether ops that are made now are part of a program or of a replica's function on an IPU.

    Example:
        >>> is_in_program()
        False
    """
    return is_on_device() and (tracing.in_compilation() or tf_distribute.in_replica_function())


def instance_reduction_scope() -> Any:
    """Returns a scope whose reductions are over the replicas of this process, also where several have one program's.

    Example:
        >>> with instance_reduction_scope():
        ...     total = reduce_on_device(tf.distribute.ReduceOp.SUM, tf.constant(1.0))
    """
    if context.executing_eagerly():
        return nullcontext()
    attribute = attr_value_pb2.AttrValue(b=True)
    return tf_graphs.attr_scope(ops.get_default_graph(), {vocabulary.WITHIN_INSTANCE_ATTRIBUTE: attribute})


def _is_ipu_device(device: str) -> bool:
    return bool(device) and device_lib.DeviceSpec.from_string(device).device_type == "IPU"
