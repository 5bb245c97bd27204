"""`horovod.tensorflow.keras`: Horovod's collectives, distributed optimizer and callbacks for Keras models."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from tf_ipu_shim import keras2
from tf_ipu_shim.api.horovod.tensorflow import (
    Adasum,
    Average,
    Compression,
    DistributedOptimizer,
    Sum,
    broadcast_variables,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from tf_ipu_shim.api.horovod.tensorflow.functions import Reduction
from tf_ipu_shim.runtime.jobs import collectives

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "Sum",
    "allgather",
    "allreduce",
    "broadcast",
    "callbacks",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]


def allreduce(value: Any, name: str | None = None, average: bool = True) -> Any:
    """Reduces a value over all processes, at once.

    Args:
        value: a value that NumPy can convert, of the same shape in every process.
        name: the same in every process.
        average: whether to divide by the number of processes.

    Source: `horovod.tensorflow.keras.allreduce`.

    Example:
        >>> float(allreduce(2.0))  # in a job of one process
        2.0
    """
    return collectives.run("mean" if average else "sum", name or "keras", [np.asarray(value)])[0]


def allgather(value: Any, name: str | None = None) -> Any:
    """Returns the values of all processes along their first axis.

    Args:
        value: a value that NumPy can convert.
        name: the same in every process.

    Source: `horovod.tensorflow.keras.allgather`.

    Example:
        >>> allgather([1, 2]).tolist()
        [1, 2]
    """
    return collectives.run("gather", name or "keras", [np.asarray(value)])[0]


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Returns the value of one process, in all processes.

    Args:
        value: a value that NumPy can convert, of the same shape in every process.
        root_rank: the process whose value it is.
        name: the same in every process.

    Source: `horovod.tensorflow.keras.broadcast`.

    Example:
        >>> float(broadcast(2.0, root_rank=0))
        2.0
    """
    return collectives.run("broadcast", name or "keras", [np.asarray(value)], root_rank)[0]


_Callback: Any = keras2.public_module().callbacks.Callback


class BroadcastGlobalVariablesCallback(_Callback):  # type: ignore[misc]
    """Sets a model and its optimizer to the values that they have in one process, once both have variables.

    Args:
        root_rank: the process whose values they are.
        device: a device of Horovod's library: the host.

    Raises:
        UnsupportedError: another device.

    Source: `horovod.tensorflow.keras.callbacks.BroadcastGlobalVariablesCallback`.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        Reduction(None, None, {"device_dense": device})
        self._is_done = False

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts all variables after the first batch, when they exist."""
        if not self._is_done:
            optimizer = self.model.optimizer
            optimizer_variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
            broadcast_variables([*self.model.variables, *optimizer_variables], self.root_rank)
            self._is_done = True


class MetricAverageCallback(_Callback):  # type: ignore[misc]
    """Replaces an epoch's logs by their means over all processes. Place it before callbacks that read them.

    Args:
        device: a device of Horovod's library: the host.

    Raises:
        UnsupportedError: another device.

    Source: `horovod.tensorflow.keras.callbacks.MetricAverageCallback`.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()
        Reduction(None, None, {"device_dense": device})

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Averages the epoch's metrics over the processes, in the order of names."""
        for name, value in sorted((logs or {}).items()):
            logs[name] = float(allreduce(np.float64(value), f"metric {name}"))  # type: ignore[index]


callbacks = types.SimpleNamespace(
    BroadcastGlobalVariablesCallback=BroadcastGlobalVariablesCallback, MetricAverageCallback=MetricAverageCallback
)
