"""The base of multi-process strategies: each process has its own IPUs, and gradients are reduced on the host.

Graphcore's instances of one job share a program whose replicas exchange over IPU-Links. Here a process's replicas
exchange inside its program, and processes through TensorFlow's collective runtime; the sums are the same. The
configuration of a PopDistStrategy says whether its program is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tf_ipu_shim import errors, sdk
from tf_ipu_shim.frontend.strategies import host_collectives, process_variables, strategy_extended
from tf_ipu_shim.frontend.tracing import compiled_functions, tracing
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.runtime.jobs import job
from tf_ipu_shim.tf_private.distribute import distribute_lib, distribute_utils, values
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import indexed_slices
from tf_ipu_shim.tf_private.utilities import tf_logging

_SEPARATE_PROGRAMS = (
    "Process %d of %d reduces over its own replicas only, so the processes train separately: "
    "experimental.multi_replica_distribution is not set. Call strategy.update_ipu_config(config) before "
    "config.configure_ipu_system()."
)


class ProcessStrategy(distribute_lib.StrategyV1):
    """A strategy of one process among several.

    Args:
        extended: its extended part.
    """

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Runs a function on this process's IPU device; a `tf.function` as one compiled program.

        Args:
            fn: a `tf.function`, or a Python function, whose ops run one by one outside a graph.
            args: positional arguments.
            kwargs: keyword arguments.
            options: a `tf.distribute.RunOptions`; nothing in it changes a compiled function.

        Returns:
            The function's result, in this process.

        Example:
            >>> strategy = ipu.distributed.popdist_strategy.PopDistStrategy()
            >>> float(strategy.run(tf.function(lambda x: x + 1.0), args=[1.0]))
            2.0
        """
        fn = compiled_functions.behind_call(fn)
        if compiled_functions.is_function(fn) and not tracing.in_compilation():
            fn = compiled_functions.compile_function(fn)
        return super().run(fn, args, kwargs, options)

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """`run`, as TensorFlow 1.15 and 2.1 call it.

        Args:
            fn: the function. It receives this process's part of a distributed dataset's elements.
            args: positional arguments.
            kwargs: keyword arguments.

        Returns:
            The function's result, in this process.

        Example:
            >>> strategy = ipu.distributed.popdist_strategy.PopDistStrategy()
            >>> float(strategy.experimental_run_v2(tf.function(lambda x: x + 1.0), args=[1.0]))
            2.0
        """
        args, kwargs = distribute_utils.select_replica(0, (tuple(args), kwargs))
        return self.run(fn, args, kwargs)

    @property
    def _device_ordinal(self) -> int:
        """The TensorFlow device that queues made in the scope belong to."""
        return self.extended._device_ordinal


class ProcessExtended(strategy_extended.DeviceExtended):
    """The extended part of a strategy of one process among several.

    Args:
        container_strategy: the strategy.
        ipu_device: the device that stores variables and runs functions.
        variables_on_host: whether variables live on the host instead.
        replica_reductions: whether a reduction in a program is one over the program's replicas, too.
    """

    def __init__(
        self,
        container_strategy: Any,
        ipu_device: str,
        variables_on_host: bool = False,
        replica_reductions: bool = False,
    ) -> None:
        super().__init__(container_strategy, ipu_device, "/device:CPU:0")
        self._job = job.current()
        self._variable_device = self._cpu_device if variables_on_host else ipu_device
        self._add_ipu_cross_replica_reductions = replica_reductions

    _programs_span_instances = False
    """Whether a program reduces over its replicas only, which the configuration may place in several instances.

    On the IPU Model a program has the replicas of one instance, so the instances reduce on the host there.
    """

    @property
    def should_checkpoint(self) -> bool:
        """Returns whether this process writes checkpoints: the first does."""
        return self._job.rank == 0

    @property
    def should_save_summary(self) -> bool:
        """Returns whether this process writes summaries: the first does."""
        return self._job.rank == 0

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._job.size

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        kwargs["initial_value"] = _typed_initial_value(kwargs.get("initial_value"), kwargs.get("dtype"))
        if kwargs.get("colocate_with") is None and self._variable_device != self._ipu_device:
            kwargs.pop("colocate_with", None)
            kwargs["initial_value"] = self._initial_value_on_host(kwargs.get("initial_value"))
            with ops.device(self._variable_device):
                return process_variables.with_synchronization(next_creator(**kwargs), self)
        return process_variables.with_synchronization(super()._create_variable(next_creator, **kwargs), self)

    def _initial_value_on_host(self, initial_value: Any) -> Any:
        """Returns the first process's value, the initial value of all."""
        on_host = super()._initial_value_on_host(initial_value)
        if self._job.size == 1 or initial_value is None:
            return on_host

        def broadcast_result(*args: Any, **kwargs: Any) -> Any:
            with strategy_extended.device_scope(self._cpu_device):
                value = on_host(*args, **kwargs) if callable(on_host) else on_host
                with host_collectives.ordered_exchanges():
                    return host_collectives.broadcast(value, 0)

        return broadcast_result

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return self._reduced(reduce_op, [value])[0]

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> list[Any]:
        return self._reduced(reduce_op, [value for value, _ in value_destination_pairs])

    def _reduced(self, reduce_op: Any, operands: Sequence[Any]) -> list[Any]:
        """Reduces all at once: processes that wait for each other one tensor at a time may do so in other orders."""
        parts = [value.values[0] if isinstance(value, values.DistributedValues) else value for value in operands]
        if self._programs_span_instances and strategy_extended.is_in_program() and not flags.current().use_ipu_model:
            self._warn_of_separate_programs()
            return self._reduced_over_replicas(reduce_op, parts)
        with strategy_extended.instance_reduction_scope():
            parts = self._reduced_over_replicas(reduce_op, parts)
        mean = host_collectives.is_mean(reduce_op)
        tensors = [index for index, value in enumerate(parts) if _is_tensor_like(value)]
        if self._job.size == 1 or not tensors:
            return parts
        for index, value in zip(tensors, host_collectives.all_reduce([parts[i] for i in tensors], mean)):
            parts[index] = value
        return parts

    def _warn_of_separate_programs(self) -> None:
        """Logs that instances train separately, because the configuration does not name the others."""
        options = devices.configured()
        if self._job.size > 1 and options is not None and options.multi_replica_process_count < 2:
            tf_logging.log_first_n(tf_logging.WARN, _SEPARATE_PROGRAMS, 1, self._job.rank, self._job.size)

    def _reduced_over_replicas(self, reduce_op: Any, parts: list[Any]) -> list[Any]:
        if not self._add_ipu_cross_replica_reductions:
            return parts
        return [strategy_extended.reduce_on_device(reduce_op, value) for value in parts]

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        if self._job.size > 1:
            raise errors.UnsupportedError(
                f"A dataset is not divided among the {self._job.size} processes of a job. Select each one's part with "
                "dataset.shard(processes, rank), or use distribute_datasets_from_function."
            )
        return super()._experimental_distribute_dataset(dataset, options)

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        this = distribute_lib.InputContext(self._job.size, self._job.rank, self._num_replicas_in_sync)
        return self._from_function(dataset_fn, this, options)


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, indexed_slices.IndexedSlices) or hasattr(value, "dtype")


def warn_of_deprecation(strategy: str) -> None:
    """Logs that a strategy is deprecated, in the SDKs that do."""
    if sdk.current() >= (3, 0):
        tf_logging.warning(f"{strategy} is deprecated. Use PopDistStrategy instead.")


def _typed_initial_value(initial_value: Any, dtype: Any) -> Any:
    """Returns a variable's initial value as a function with the variable's type: processes exchange tensors."""
    if initial_value is None or dtype is None or callable(initial_value):
        return initial_value
    return lambda: ops.convert_to_tensor(initial_value, dtype)
