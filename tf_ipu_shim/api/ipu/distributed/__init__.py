"""`tensorflow.python.ipu.distributed`: collectives and strategies for jobs of several processes.

Graphcore's package is Horovod's interface for TensorFlow 1, and has three functions for TensorFlow 2; here it is both.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.api.ipu.distributed.basics import HorovodBasics
from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.frontend.strategies import host_collectives
from tf_ipu_shim.tf_private.eager import tf2

__getattr__, __dir__ = lazy(__name__, "host_collective_ops ipu_horovod_strategy popdist_strategy")

_basics = HorovodBasics()
Average, Sum, Adasum = HorovodBasics.Average, HorovodBasics.Sum, HorovodBasics.Adasum
init, shutdown = _basics.init, _basics.shutdown
rank, size = _basics.rank, _basics.size
local_rank, local_size = _basics.local_rank, _basics.local_size
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported, mpi_enabled, mpi_built = _basics.mpi_threads_supported, _basics.mpi_enabled, _basics.mpi_built
gloo_enabled, gloo_built = _basics.gloo_enabled, _basics.gloo_built
nccl_built, ddl_built, mlsl_built = _basics.nccl_built, _basics.ddl_built, _basics.mlsl_built


def allreduce(
    tensor: Any = None,
    op: Any = None,
    tensor_name: Any = None,
    postscale_factor: float = 1.0,
    *,
    prescale_factor: float = 1.0,
    value: Any = None,
    reduce_op: Any = None,
) -> Any:
    """Reduces a tensor over all processes.

    Args:
        tensor: a tensor of the same shape in every process.
        op: `Average` (when left out) or `Sum`; or a `tf.distribute.ReduceOp`.
        tensor_name: the same in every process; its tensor's name when left out. SDK 2.6 has `prescale_factor` here.
        postscale_factor: a factor for the result.
        prescale_factor: a factor for the tensor.
        value: the TensorFlow 2 name of `tensor`.
        reduce_op: `op`, by its name for TensorFlow 2.

    Returns:
        The reduced tensor.

    Raises:
        NotImplementedError: `op` is `Adasum`.
        ValueError: another reduction.

    Source: `tensorflow.python.ipu.distributed.allreduce`.

    Example:
        >>> allreduce(tf.constant([1.0])).numpy().tolist()  # in a job of one process
        [1.0]
    """
    if isinstance(tensor_name, (int, float)):
        prescale_factor, tensor_name = tensor_name, None
    mean = _is_mean(op if reduce_op is None else reduce_op)
    operand = tensor if value is None else value
    if prescale_factor != 1.0:
        operand = operand * prescale_factor
    name = tensor_name or host_collectives.collective_name(operand, "allreduce")
    (result,) = host_collectives.all_reduce([operand], mean, name)
    return result if postscale_factor == 1.0 else result * postscale_factor


def allgather(tensor: Any = None, name: str | None = None, *, value: Any = None, tensor_name: str | None = None) -> Any:
    """Gathers the tensors of all processes: for TensorFlow 2 along a new first axis, for TensorFlow 1 along the first.

    The arguments' names select one of the two; if they do not, TensorFlow 2's behaviour does.

    Args:
        tensor: for TensorFlow 1 a tensor of any size along the first axis, else of the same shape in every process.
        name: the same in every process; its tensor's name when left out. The TensorFlow 1 name.
        value: the TensorFlow 2 name of `tensor`.
        tensor_name: the TensorFlow 2 name of `name`.

    Returns:
        The tensors in the order of ranks.

    Source: `tensorflow.python.ipu.distributed.allgather`.

    Example:
        >>> allgather(value=tf.constant([1.0])).numpy().tolist()  # in a job of one process
        [[1.0]]
        >>> allgather(tensor=tf.constant([1.0]), name="mine").numpy().tolist()
        [1.0]
    """
    if value is not None or tensor_name is not None:
        stacks = True
    else:
        stacks = name is None and tf2.enabled() and sdk.current() >= (3, 0)
    if not stacks:
        return horovod_allgather(tensor, name)
    operand = tensor if value is None else value
    return host_collectives.all_stack(operand, tensor_name or host_collectives.collective_name(operand, "allgather"))


def horovod_allgather(tensor: Any, name: str | None = None) -> Any:
    """Concatenates the tensors of all processes along their first axis: `allgather` of Horovod.

    Args:
        tensor: a tensor of any size along the first axis, else of the same shape in every process.
        name: the same in every process; its tensor's name when left out.

    Returns:
        The tensors in the order of ranks.

    Source: `tensorflow.python.ipu.horovod.allgather`.

    Example:
        >>> horovod_allgather(tf.constant([1.0])).numpy().tolist()  # in a job of one process
        [1.0]
    """
    return host_collectives.all_gather(tensor, name or host_collectives.collective_name(tensor, "allgather"))


def broadcast(
    tensor: Any = None,
    root_rank: int = 0,
    name: str | None = None,
    *,
    value: Any = None,
    tensor_name: str | None = None,
) -> Any:
    """Returns the tensor of one process, in all processes.

    Args:
        tensor: a tensor of the same shape in every process.
        root_rank: the process whose tensor it is.
        name: the same in every process; its tensor's name when left out.
        value: the TensorFlow 2 name of `tensor`.
        tensor_name: the TensorFlow 2 name of `name`.

    Returns:
        That tensor.

    Raises:
        ValueError: the process does not exist.

    Source: `tensorflow.python.ipu.distributed.broadcast`.

    Example:
        >>> broadcast(tf.constant([1.0]), 0).numpy().tolist()
        [1.0]
    """
    operand = tensor if value is None else value
    called = name or tensor_name or host_collectives.collective_name(operand, "broadcast")
    return host_collectives.broadcast(operand, root_rank, called)


def _is_mean(op: Any) -> bool:
    if op is None or (isinstance(op, int) and op == Average):
        return True
    if isinstance(op, int) and op == Adasum:
        raise NotImplementedError(
            "The Adasum reduction is not implemented. hvd.Adasum was requested: use Average or Sum."
        )
    if isinstance(op, int) and op == Sum:
        return False
    return host_collectives.is_mean(op)
