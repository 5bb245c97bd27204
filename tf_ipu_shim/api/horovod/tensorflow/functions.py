"""`horovod.tensorflow.functions`: reduces, gathers and broadcasts tensors, gradients and objects."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from tf_ipu_shim import errors
from tf_ipu_shim.api.ipu import distributed
from tf_ipu_shim.frontend.strategies import host_collectives
from tf_ipu_shim.runtime.jobs import collectives, safe_unpickler

# Arguments of Horovod's that change what is sent where, and the values of each with which they change nothing.
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "device_dense": ("", "/cpu:0"),
    "device_sparse": ("", "/cpu:0"),
    "backward_passes_per_step": (1,),
    "average_aggregated_gradients": (False,),
    "gradient_predivide_factor": (1.0,),
    "num_groups": (0,),
    "groups": (None,),
    "process_set": (None,),
}


class _NotCompressed:
    """Sends tensors unchanged."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns the tensor to send, and the dtype to restore; None if unchanged."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        """Returns the received tensor, in its original dtype."""
        return tensor if context is None else tf.cast(tensor, context)


class _Float16(_NotCompressed):
    """Sends floating-point tensors, and adds them up, as float16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns the tensor to send, and its original dtype."""
        return (tf.cast(tensor, tf.float16), tensor.dtype) if tensor.dtype.is_floating else (tensor, None)


class Compression:
    """How tensors are sent: unchanged, or as float16.

    Source: `horovod.tensorflow.Compression`.
    """

    none = _NotCompressed
    fp16 = _Float16


def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    **options: Any,
) -> Any:
    """Reduces a tensor over all processes.

    Args:
        tensor: a tensor of the same shape in every process; `IndexedSlices` become dense.
        average: whether to divide by the number of processes; older scripts pass it instead of `op`.
        device_dense: a device of Horovod's library; the host here.
        device_sparse: the same.
        compression: `Compression.none` (when left out) or `Compression.fp16`.
        op: `Average` (when left out) or `Sum`.
        prescale_factor: a factor for the tensor.
        postscale_factor: a factor for the result.
        name: the same in every process; its tensor's name when left out.
        **options: other arguments of Horovod: refused, except their default values.

    Returns:
        The reduced tensor.

    Raises:
        NotImplementedError: `op` is `Adasum`.
        TypeError: an option is not one of Horovod's.
        UnsupportedError: the arguments request a feature that is not supported.
        ValueError: another reduction, or both `average` and `op`.

    Source: `horovod.tensorflow.allreduce`.

    Example:
        >>> allreduce(tf.constant([1.0]), op=distributed.Sum).numpy().tolist()  # in a job of one process
        [1.0]
    """
    options.update(device_dense=device_dense, device_sparse=device_sparse)
    reduction = Reduction(_operation(average, op), compression, options, prescale_factor, postscale_factor)
    return reduction([tensor], name or host_collectives.collective_name(tensor, "allreduce"))[0]


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    **options: Any,
) -> list[Any]:
    """Reduces tensors over all processes, in one exchange.

    Args:
        tensors: each of the same shape in every process.
        average: as of `allreduce`.
        device_dense: as of `allreduce`.
        device_sparse: as of `allreduce`.
        compression: as of `allreduce`.
        op: as of `allreduce`.
        prescale_factor: as of `allreduce`.
        postscale_factor: as of `allreduce`.
        name: the same in every process.
        **options: as of `allreduce`.

    Returns:
        The reduced tensors.

    Source: `horovod.tensorflow.grouped_allreduce`.

    Example:
        >>> [float(one) for one in grouped_allreduce([tf.constant(1.0), tf.constant(2.0)])]
        [1.0, 2.0]
    """
    options.update(device_dense=device_dense, device_sparse=device_sparse)
    return Reduction(_operation(average, op), compression, options, prescale_factor, postscale_factor)(tensors, name)


def _operation(average: bool | None, op: Any) -> Any:
    if average is None:
        return op
    if op is not None:
        raise ValueError(
            "The op parameter supersedes average: both `op` and `average` were given. Please provide only one of them."
        )
    return distributed.Average if average else distributed.Sum


def broadcast_object(obj: Any, root_rank: int = 0, session: Any = None, name: str | None = None) -> Any:
    """Returns a Python object of one process, in all processes.

    Args:
        obj: as of `allgather_object`; of other processes than `root_rank` the value does not matter.
        root_rank: the process whose object it is.
        session: a session of TensorFlow 1; nothing is run in it.
        name: the same in every process.

    Returns:
        That object, or a copy of it.

    Source: `horovod.tensorflow.broadcast_object`.

    Example:
        >>> broadcast_object({"epoch": 3})
        {'epoch': 3}
    """
    return allgather_object(obj, session, f"{name or 'object'} of rank {root_rank}")[root_rank]


def allgather_object(obj: Any, session: Any = None, name: str | None = None) -> list[Any]:
    """Returns the Python objects of all processes.

    Args:
        obj: numbers, strings, bytes, None, and lists, tuples, sets and dictionaries of them. An object of any other
            class is refused: to rebuild it, code from another process would be run.
        session: a session of TensorFlow 1; nothing is run in it.
        name: the same in every process.

    Returns:
        The objects in the order of ranks.

    Raises:
        UnsupportedError: an object is, or has in it, one of another class.

    Source: `horovod.tensorflow.allgather_object`.

    Example:
        >>> allgather_object("mine")
        ['mine']
    """
    pickled = np.frombuffer(pickle.dumps(obj), np.uint8)
    called = name or "object"
    (lengths,) = collectives.run("gather", f"{called}/length", [np.array([len(pickled)])])
    (values,) = collectives.run("gather", called, [pickled])
    ends = np.cumsum(lengths)
    return [safe_unpickler.loads(values[end - length : end].tobytes()) for end, length in zip(ends, lengths)]


class Reduction:
    """How tensors of all processes are combined.

    Args:
        op: `Average` (None) or `Sum`.
        compression: their form during the transfer; None: unchanged.
        options: others of Horovod's.
        prescale: a factor for the tensors before the reduction.
        postscale: and after.

    Raises:
        NotImplementedError: `op` is `Adasum`.
        TypeError: an option is not one of Horovod's.
        UnsupportedError: the arguments request a feature that is not supported.
    """

    def __init__(
        self, op: Any, compression: Any, options: dict[str, Any], prescale: float = 1.0, postscale: float = 1.0
    ) -> None:
        unknown = sorted(set(options) - set(_DEFAULTS))
        if unknown:
            raise TypeError(
                f"Horovod's distributed gradients have no argument {', '.join(unknown)}; expected arguments "
                "of horovod.tensorflow. Remove it, or correct its name."
            )
        changed = {name: value for name, value in options.items() if value not in _DEFAULTS[name]}
        if compression is not None and not hasattr(compression, "decompress"):
            changed["compression"] = compression
        if changed:
            settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
            raise errors.UnsupportedError(
                f"horovod.tensorflow with {settings} is not emulated: gradients are reduced on the host in each "
                "step, by "
                "all processes. Leave it out. Use ipu.optimizers.GradientAccumulationOptimizerV2 to accumulate "
                "gradients. Compression.none and Compression.fp16 say what is sent."
            )
        self._compression = compression or Compression.none
        self._factors = prescale, postscale
        self._mean = distributed._is_mean(op)

    def __call__(self, gradients: Sequence[Any], name: str | None = None) -> list[Any]:
        """Returns the reduced tensors. None stays None: all processes pass it together, as they train the same
        model.
        """
        before, after = self._factors
        dense = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
        compressed = [self._compression.compress(tensor if before == 1.0 else tensor * before) for tensor in dense]
        if not compressed:
            return list(gradients)
        tensors, contexts = zip(*compressed)
        received = host_collectives.all_reduce(list(tensors), self._mean, name)
        decompressed = map(self._compression.decompress, received, contexts)
        results = iter([tensor if after == 1.0 else tensor * after for tensor in decompressed])
        return [None if gradient is None else next(results) for gradient in gradients]
