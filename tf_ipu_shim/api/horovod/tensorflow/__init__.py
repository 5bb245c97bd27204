"""`horovod.tensorflow`: collectives between the processes of a job, and distributed optimizers and tapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as v1
import tensorflow.compat.v2 as tf

from tf_ipu_shim.api.horovod.tensorflow.functions import (
    Compression,
    Reduction,
    allgather_object,
    allreduce,
    broadcast_object,
    grouped_allreduce,
)
from tf_ipu_shim.api.ipu.distributed import (
    Adasum,
    Average,
    Sum,
    broadcast,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    shutdown,
    size,
)
from tf_ipu_shim.api.ipu.distributed import horovod_allgather as allgather
from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.configuration.arguments import note_arguments

__all__ = [
    "Adasum",
    "Average",
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "Sum",
    "allgather",
    "allgather_object",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_variables",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "grouped_allreduce",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "shutdown",
    "size",
]

__getattr__, __dir__ = lazy(__name__, "functions keras")


def is_initialized() -> bool:
    """Returns whether `init` has been called, and `shutdown` not since."""
    try:
        return bool(size())
    except ValueError:
        return False


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> Any:
    """Sets variables to the values that they have in one process.

    Args:
        variables: the same in every process.
        root_rank: the process whose values they are.

    Returns:
        In a graph, the operation that does it. None if ops run eagerly.

    Source: `horovod.tensorflow.broadcast_variables`.

    Example:
        >>> init()
        >>> broadcast_variables([tf.Variable(1.0)], root_rank=0)
    """
    writes: list[Any] = []
    for variable in variables:
        # One after another: each holds a thread until all processes have come to it.
        with tf.control_dependencies([] if tf.executing_eagerly() else writes[-1:]):
            writes.append(variable.assign(broadcast(tf.convert_to_tensor(variable), root_rank)))
    return None if tf.executing_eagerly() else tf.group(*writes)


def broadcast_global_variables(root_rank: int) -> Any:
    """Sets all variables of a TensorFlow 1 graph to the values that they have in one process.

    Args:
        root_rank: the process whose values they are.

    Returns:
        The operation that does it.

    Raises:
        RuntimeError: ops run eagerly, so this collection of variables does not exist.

    Source: `horovod.tensorflow.broadcast_global_variables`.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "hvd.broadcast_global_variables() does not support eager execution. Please use "
            "hvd.broadcast_variables(<model/optimizer variables>) instead."
        )
    return broadcast_variables(v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Sets all variables to the values of one process when a session begins, so that all train the same model.

    Args:
        root_rank: the process whose values they are.

    Source: `horovod.tensorflow.BroadcastGlobalVariablesHook`.
    """

    def __init__(self, root_rank: int) -> None:
        self.root_rank = root_rank
        self._broadcast: Any = None

    def begin(self) -> None:
        """Adds the operation to the graph."""
        self._broadcast = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it."""
        session.run(self._broadcast)


class _Optimizer(v1.train.Optimizer):  # type: ignore[misc]
    """A TensorFlow 1 optimizer that receives gradients reduced over all processes."""

    def __init__(self, optimizer: Any, name: str | None, use_locking: bool, reduction: Reduction) -> None:
        super().__init__(use_locking, name or f"Distributed{type(optimizer).__name__}")
        self._optimizer = optimizer
        self._reduction = reduction

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients = self._reduction([gradient for gradient, _ in pairs])
        return list(zip(gradients, [variable for _, variable in pairs], strict=True))

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._optimizer.variables()


def DistributedOptimizer(  # noqa: N802  # Horovod's name
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    *,
    compression: Any = None,
    sparse_as_dense: bool = True,
    op: Any = None,
    **options: Any,
) -> Any:
    """Returns an optimizer that applies the gradients of all processes, reduced to one.

    Args:
        optimizer: an optimizer of TensorFlow 1, or of Keras.
        name: the name of the optimizer.
        use_locking: whether TensorFlow 1 locks variables while it updates them.
        compression: `Compression.none` (when left out) or `Compression.fp16`.
        sparse_as_dense: gradients of embeddings are always made dense; no effect.
        op: `Average` (when left out) or `Sum`.
        **options: other arguments of Horovod, such as `num_groups`: refused, except their default values.

    Returns:
        An optimizer of the same kind.

    Raises:
        TypeError: an option is not one of Horovod's.
        UnsupportedError: the arguments request a feature that is not supported.
        ValueError: `optimizer` is of an unknown kind.

    Source: `horovod.tensorflow.DistributedOptimizer`.

    Example:
        >>> with tf.Graph().as_default():
        ...     optimizer = DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        ...     optimizer.get_name()
        'DistributedGradientDescentOptimizer'
    """
    note_arguments("horovod.DistributedOptimizer", sparse_as_dense=sparse_as_dense)
    reduction = Reduction(op, compression, options)
    if isinstance(optimizer, v1.train.Optimizer):
        return _Optimizer(optimizer, name, use_locking, reduction)
    if not hasattr(optimizer, "apply_gradients") or not hasattr(optimizer, "get_config"):
        raise ValueError(
            "Provided optimizer doesn't inherit from either legacy TensorFlow or Keras optimizer: "
            f"{type(optimizer).__name__}. Pass an optimizer of tf.compat.v1.train or tf.keras."
        )
    kind = type(optimizer)

    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        gradients = reduction([gradient for gradient, _ in pairs])
        reduced = list(zip(gradients, [variable for _, variable in pairs], strict=True))
        return kind.apply_gradients(self, reduced, *args, **kwargs)

    wrapper = type(kind.__name__, (kind,), {"apply_gradients": apply_gradients})
    return wrapper.from_config({**optimizer.get_config(), **({} if name is None else {"name": name})})  # type: ignore[attr-defined]


class DistributedGradientTape:
    """A gradient tape that reduces gradients over all processes.

    Args:
        gradtape: a `tf.GradientTape`.
        compression: as of `DistributedOptimizer`.
        sparse_as_dense: gradients of embeddings are always made dense; no effect.
        op: `Average` (when left out) or `Sum`.
        **options: as of `DistributedOptimizer`.

    Raises:
        TypeError: an option is not one of Horovod's.
        UnsupportedError: the arguments request a feature that is not supported.

    Source: `horovod.tensorflow.DistributedGradientTape`.

    Example:
        >>> init()
        >>> w = tf.Variable(3.0)
        >>> with DistributedGradientTape(tf.GradientTape()) as tape:
        ...     loss = w * w
        >>> float(tape.gradient(loss, w))
        6.0
    """

    def __init__(
        self, gradtape: Any, *, compression: Any = None, sparse_as_dense: bool = True, op: Any = None, **options: Any
    ) -> None:
        note_arguments("horovod.DistributedOptimizer", sparse_as_dense=sparse_as_dense)
        self._tape = gradtape
        self._reduction = Reduction(op, compression, options)

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: Any) -> Any:
        return self._tape.__exit__(*exception)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """Returns the gradients of all processes, reduced to one; see `tf.GradientTape.gradient`."""
        gradients = self._tape.gradient(target, sources, output_gradients)
        flat = tf.nest.flatten(gradients)
        return tf.nest.pack_sequence_as(gradients, self._reduction(flat))
