"""`tensorflow.python.ipu.ipu_session_run_hooks`: logs tensors of an IPU program during TensorFlow 1 sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.tensors import tensor_util
from tf_ipu_shim.tf_private.training import basic_session_run_hooks, session_run_hook
from tf_ipu_shim.tf_private.utilities import tf_logging

__all__ = ["IPULoggingTensorHook"]

_OLDER = {"feed_name", "replication_factor"}


class IPULoggingTensorHook(session_run_hook.SessionRunHook):
    """Logs tensors of a program on the IPU every few loops, or every few seconds.

    Args:
        every_n_iter: the number of session runs between logs.
        every_n_secs: the seconds between logs.
        at_end: log when the session ends.
        formatter: a function from a dictionary of values by name to a string.
        logging_mode: `LoggingMode.LAST` for only the last value, `LoggingMode.ALL` for all since the last time.
        **kwargs: arguments of older SDKs: `feed_name`, `replication_factor`.

    Raises:
        TypeError: an argument has the wrong type, or is unknown.
        ValueError: a number is out of range, both `every_n_iter` and `every_n_secs` are given, or no argument says when
            to log.

    Source: `tensorflow.python.ipu.ipu_session_run_hooks.IPULoggingTensorHook`.

    Example:
        >>> hook = IPULoggingTensorHook(every_n_iter=1)
        >>> def model_fn(features, labels, mode):
        ...     ...
        ...     train_op = tf.group([train_op, hook.log({"loss": loss})])
        ...     return IPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[hook])
    """

    LoggingMode = IPUOutfeedMode

    @argument_order(5, "feed_name replication_factor", until=(2, 3))
    def __init__(
        self,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Mapping[str, Any]], str] | None = None,
        logging_mode: Any = IPUOutfeedMode.LAST,
        **kwargs: Any,
    ) -> None:
        if kwargs.keys() - _OLDER:
            raise TypeError(
                f"IPULoggingTensorHook takes no argument {min(kwargs.keys() - _OLDER)!r}; expected those of "
                "Graphcore's class. Remove it, or correct its name."
            )
        _check_times(every_n_iter, every_n_secs, at_end)
        if formatter is not None and not callable(formatter):
            raise TypeError(f"formatter must be a function, not {formatter!r}.")
        self._log_at_end = at_end
        self._formatter = formatter
        self._timer = (
            basic_session_run_hooks.NeverTriggerTimer()
            if every_n_iter is None and every_n_secs is None
            else basic_session_run_hooks.SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._outfeed = IPUOutfeedQueue(outfeed_mode=logging_mode, **kwargs)
        self._runs = 0

    def log(self, tensors: Any) -> Any:
        """Sends tensors to this hook from inside the program.

        Args:
            tensors: a dictionary of tensors by name, a list of tensors, or one.

        Returns:
            The operation that does it; to be made part of the `train_op`.

        Raises:
            RuntimeError: called a second time.
            TypeError: a value is not a tensor.
        """
        if self._outfeed.enqueued:
            raise RuntimeError(
                "Cannot use this hook object's log function more than once: IPULoggingTensorHook.log was "
                "already called. Pass all tensors in one call, or create another hook."
            )
        if not isinstance(tensors, dict):
            listed = tensors if isinstance(tensors, (list, tuple)) else [tensors]
            tensors = {_checked(tensor).name: tensor for tensor in listed}
        return self._outfeed.enqueue({name: _checked(tensor) for name, tensor in tensors.items()})

    def begin(self) -> None:
        """Makes the operations, before the graph is closed.

        Raises:
            RuntimeError: `log` was not called.
        """
        if not self._outfeed.enqueued:
            raise RuntimeError(
                "This logging hook's outfeed was not enqueued. Did you forget to call the log function? "
                "IPULoggingTensorHook.log must be called with tensors in the model function. Call it there, "
                "and run the op that it returns."
            )
        self._timer.reset()
        self._runs = 0
        self._dequeue, self._delete = self._outfeed.dequeue(), self._outfeed.deleter

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Logs if it is time."""
        if self._timer.should_trigger_for_step(self._runs):
            self._log_values(run_context.session)
        self._runs += 1

    def end(self, session: Any) -> None:
        """Logs the remaining elements if requested, and frees the queue."""
        if self._log_at_end:
            self._log_values(session)
        session.run(self._delete)

    def _log_values(self, session: Any) -> None:
        values = session.run(self._dequeue)
        elapsed, _ = self._timer.update_last_triggered_step(self._runs)
        if self._formatter is not None:
            tf_logging.info(self._formatter(values))
            return
        with np.printoptions(suppress=True):
            text = ", ".join(f"{name} = {value}" for name, value in values.items())
        tf_logging.info(text if elapsed is None else f"{text} ({elapsed:.3f} sec)")


def _check_times(every_n_iter: Any, every_n_secs: Any, at_end: bool) -> None:
    if every_n_iter is not None and every_n_secs is not None:
        raise ValueError("Cannot provide both every_n_iter and every_n_secs. Pass one of them.")
    if every_n_iter is None and every_n_secs is None and not at_end:
        raise ValueError(
            "Either every_n_iter, every_n_secs or at_end should be provided. Else nothing is logged. Pass one of them."
        )
    if every_n_iter is not None:
        check_integer("every_n_iter", every_n_iter)
        if every_n_iter < 1:
            raise ValueError(f"every_n_iter must be at least 1, but {every_n_iter} was given. Pass at least 1.")
    if every_n_secs is not None and not (isinstance(every_n_secs, (int, float)) and every_n_secs >= 0):
        raise ValueError(f"every_n_secs must be a number of seconds, from 0 on, not {every_n_secs!r}. Pass 0 or more.")


def _checked(tensor: Any) -> Any:
    if not tensor_util.is_tf_type(tensor):
        raise TypeError(f"Expected `tf.Tensor`, got {type(tensor).__name__}: {tensor!r}. Pass tensors.")
    return tensor
