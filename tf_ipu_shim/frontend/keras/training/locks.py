"""Locks that let several threads use one model's programs, outfeeds and metric variables in turn.

predicting   one execution of `predict` after the other; training and evaluation may run meanwhile
measuring    one execution of `fit` after the other, and the whole of an `evaluate`: both write the model's metrics

No turn is held while callbacks of `fit` and `predict` run: a callback may wait for another thread that uses the model.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from tf_ipu_shim.tf_private.utilities import tf_logging

HOST_FUNCTION_LIMIT = 60.0  # seconds
_YIELD = 0.001  # seconds: who is woken then has the turn before the one who has just ended another


class FairLock:
    """A re-entrant lock that lets other threads in even if one thread acquires it again and again.

    A generator whose frame ends releases it, so that a Ctrl-C at any instruction does. In a forked child it is free.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._waiting: set[int] = set()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """While this lasts, no other thread has the lock."""
        if self._process != os.getpid():
            self.__init__()  # type: ignore[misc]
        me = threading.get_ident()
        self._waiting.add(me)
        try:
            if _is_in_host_function():
                self._wait_until_free()
            with self._lock:
                self._waiting.discard(me)
                yield
        finally:
            self._waiting.discard(me)
        if self._waiting:
            time.sleep(_YIELD)

    def _wait_until_free(self) -> None:
        """Waits until the lock is free, or raises if it may never be."""
        if not self._lock.acquire(timeout=HOST_FUNCTION_LIMIT):
            raise RuntimeError(
                "A call of a Keras model from a Python function of a dataset or program timed out. Another call of "
                f"the same model took over {HOST_FUNCTION_LIMIT:g} seconds. That call may need the function's result. "
                "Call the model before, or use another model with the same weights there."
            )
        self._lock.release()


def _is_in_host_function() -> bool:
    """Returns whether TensorFlow calls the script, as `py_function` and `from_generator` have it do."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "tensorflow.python.ops.script_ops":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


# Keras' layers are built, and programs traced, by one thread at a time: models may share layers.
build_lock = FairLock()


class FitMetrics:
    """One call of `fit`, and the values that its metrics had when another thread began to use their variables.

    Args:
        replicas: the replicas of the model; those but the first have copies of variables that cannot be read.
    """

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._thread = threading.get_ident()
        self._saved: list[tuple[Any, Any]] = []
        self._disturbed = False
        self.ended = False

    @property
    def is_current_thread(self) -> bool:
        """Returns whether the current thread runs this `fit`, whose metrics its callbacks share, as in stock Keras."""
        return not self.ended and self._thread == threading.get_ident()

    def save_metrics(self, model: Any) -> None:
        """Notes that another call is about to use the variables of metrics."""
        if self.ended:
            return
        if self._replicas > 1:
            self._disturbed = True
        else:
            self._saved = [(variable, variable.numpy()) for metric in model.metrics for variable in metric.variables]

    def restore_metrics(self, model: Any) -> None:
        """Restores the metrics that `save_metrics` kept."""
        for variable, value in self._saved:
            variable.assign(value)
        self._saved = []
        if self._disturbed:
            self._disturbed = False
            model.reset_metrics()
            tf_logging.warning(
                f"The metrics of model {model.name} were used by another thread (evaluate, fit or a method for one "
                f"batch) during fit. Its {self._replicas} replicas keep their own metrics, so those of this epoch "
                "count from here on. Evaluate after fit, or in a callback's on_epoch_end."
            )


class ModelLocks:
    """The turns of one model."""

    def __init__(self) -> None:
        self._predicting = FairLock()
        self._measuring = FairLock()
        self._training: FitMetrics | None = None  # whose metrics the variables hold
        self._evaluating: int | None = None  # the thread of an `evaluate` that goes on

    def __reduce__(self) -> Any:
        """Copies a model with a new lock."""
        return ModelLocks, ()

    def hold_for_predict(self) -> contextlib.AbstractContextManager[None]:
        """While this lasts, no other thread runs the model's programs for predictions."""
        return self._predicting.hold()

    @contextlib.contextmanager
    def hold_for_call(self, model: Any, mode: str, iterator: Any, training: FitMetrics | None) -> Iterator[None]:
        """Reserves the programs of a mode for one call, which consume elements of its data."""
        with self.hold_for_predict() if mode == "predict" else self.hold_for_metrics(model, training):
            iterator.select()
            yield

    @contextlib.contextmanager
    def hold_for_metrics(self, model: Any, training: FitMetrics | None = None) -> Iterator[None]:
        """While this lasts, no other thread uses the model's metrics, nor runs programs that do."""
        if self._evaluating is not None and getattr(threading.current_thread(), "caller", None) == self._evaluating:
            raise RuntimeError(
                f"An asynchronous callback of evaluate cannot train or evaluate the same model ({model.name}): its "
                "metrics are being computed. Call set_asynchronous_callbacks(False), or do it after evaluate."
            )
        with self._measuring.hold():
            before = self._training
            if before is not training and not (training is None and before is not None and before.is_current_thread):
                if before is not None:
                    before.save_metrics(model)
                if training is not None:
                    training.restore_metrics(model)
                self._training = training
            yield

    @contextlib.contextmanager
    def hold_for_evaluate(self, model: Any) -> Iterator[None]:
        """Works like `hold_for_metrics`, for all executions of an `evaluate`."""
        with self.hold_for_metrics(model):
            outer, self._evaluating = self._evaluating, threading.get_ident()
            try:
                yield
            finally:
                self._evaluating = outer


__all__ = ["FairLock", "FitMetrics", "ModelLocks", "build_lock"]
