"""How fit, evaluate and predict go through the data: an execution of the program at a time.

The order of callbacks is Keras' own. Between two calls for a batch stands an execution, or, with asynchronous
callbacks, a mini-batch that a thread has seen come out of a running program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.python.util import nest

from tf_ipu_shim import keras2, plugin
from tf_ipu_shim.building.keras import polling_thread
from tf_ipu_shim.building.keras.replication import ReplicatedMetricReductionMethod, reduce_metrics


class Execution:
    """A program with its queues, ready to run.

    Args:
        program: runs once.
        outfeed: what it sends to.
        unpack: from what the outfeed gives to metrics or predictions.
        steps: mini-batches a replica takes in one execution.
        replicas: number of replicas.
        reduction: how metrics of replicas become one.
        asynchronous: whether callbacks are called while the program runs.
    """

    def __init__(
        self,
        program: Callable[[], None],
        outfeed: Any,
        unpack: Callable[[Any], Any],
        steps: int,
        replicas: int,
        reduction: ReplicatedMetricReductionMethod,
        asynchronous: bool,
    ) -> None:
        self._program = program
        self._outfeed = outfeed
        self._unpack = unpack
        self._steps = steps
        self._replicas = replicas
        self._reduction = reduction
        self._asynchronous = asynchronous

    def last_metrics(self, first: int, begin: Callable[[int], None], end: Callable[[int, Any], None]) -> Any:
        """Runs once, with the callbacks around it.

        Args:
            first: number of the first mini-batch.
            begin: called with a mini-batch's number.
            end: called with a mini-batch's number and its metrics.

        Returns:
            The metrics after the last mini-batch.
        """
        if self._asynchronous:
            return self._polled(first, begin, end, polling_thread.PollingThread)
        begin(first)
        self._forget()
        self._program()
        last = nest.map_structure(lambda value: value.numpy(), self._sent())
        logs = self.metrics(last)
        end(first + self._steps - 1, logs)
        return logs

    def predictions(self, first: int, begin: Callable[[int], None], end: Callable[[int, Any], None]) -> Any:
        """Runs once, with the callbacks around it; the arguments of `last_metrics`.

        Returns:
            Predictions of shape [samples, ...].
        """
        from tf_ipu_shim.building.keras.extensions_util import merge_into_batch_dimension

        if self._asynchronous:
            return self._polled(first, begin, end, polling_thread.PollingThreadPredict)
        begin(first)
        self._forget()
        self._program()
        outputs = merge_into_batch_dimension(self._sent(), self._replicas)
        outputs = nest.map_structure(lambda value: value.numpy(), outputs)
        end(first + self._steps - 1, {"outputs": outputs})
        return outputs

    def metrics(self, values: Any) -> Any:
        """The metrics of a mini-batch as callbacks see them: plain numbers, replicas reduced.

        Args:
            values: arrays, with a replica axis where there are replicas.
        """
        return nest.map_structure(plain, reduce_metrics(values, self._replicas, self._reduction))

    def _sent(self) -> Any:
        return self._unpack(self._outfeed.results(self._steps, self._replicas))

    def _forget(self) -> None:
        """Forgets what an execution has sent and nobody took: it failed, or Ctrl-C came then."""
        plugin.load().delete_outfeed(self._outfeed._id)

    def _polled(self, first: int, begin: Any, end: Any, kind: type) -> Any:
        thread = kind(
            self._outfeed,
            self._steps,
            self._replicas,
            lambda step: begin(first + step),
            lambda step, results: end(first + step, results),
        )
        thread.convert, thread.unpack = self.metrics, self._unpack
        self._forget()
        try:
            thread.start()
            self._program()
            thread.join()
        except BaseException:  # Ctrl-C too, which may come while the thread is started or waited for
            thread.cancel()
            if thread.is_alive():
                thread.join()
            raise
        return thread.get_result()


def fit(model: Any, handler: Any, callbacks: Any, validate: Callable[[int], dict[str, Any]] | None, run: Any) -> Any:
    """All epochs of training.

    Args:
        model: a Keras model.
        handler: its data.
        callbacks: Keras' list.
        validate: gives the validation metrics after an epoch, or none.
        run: from an epoch's infeed to an `Execution`, with the epochs of the handler.

    Returns:
        The history.
    """
    model.stop_training = False
    model._train_counter.assign(0)
    callbacks.on_train_begin()
    epoch_logs: Any = None
    for epoch, execution in run:
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        logs = None
        for step in handler.steps():
            logs = execution.last_metrics(step, callbacks.on_train_batch_begin, callbacks.on_train_batch_end)
            if model.stop_training:
                break
        if logs is None:
            raise ValueError("Expect x to be a non-empty array or dataset.")
        epoch_logs = copy.copy(logs)
        if validate is not None:
            epoch_logs.update(validate(epoch))
        callbacks.on_epoch_end(epoch, epoch_logs)
        if model.stop_training:
            break
    if hasattr(model.optimizer, "finalize_variable_values") and epoch_logs is not None:
        model.optimizer.finalize_variable_values(model.trainable_variables)
    callbacks.on_train_end(logs=epoch_logs)
    return model.history


def evaluate(model: Any, handler: Any, callbacks: Any, run: Any) -> dict[str, Any]:
    """One pass over the data; the arguments of `fit`.

    Returns:
        The metrics after the last mini-batch.
    """
    model._test_counter.assign(0)
    callbacks.on_test_begin()
    logs: Any = {}
    for _, execution in run:
        model.reset_metrics()
        for step in handler.steps():
            logs = execution.last_metrics(step, callbacks.on_test_batch_begin, callbacks.on_test_batch_end)
    callbacks.on_test_end(logs=logs)
    return logs


def predict(model: Any, handler: Any, callbacks: Any, run: Any) -> Any:
    """One pass over the data; the arguments of `fit`.

    Returns:
        Predictions of all samples.
    """
    model._predict_counter.assign(0)
    callbacks.on_predict_begin()
    parts = []
    for _, execution in run:
        for step in handler.steps():
            parts.append(execution.predictions(step, callbacks.on_predict_batch_begin, callbacks.on_predict_batch_end))
    callbacks.on_predict_end()
    if not parts:
        raise ValueError("Expect x to be a non-empty array or dataset.")
    return nest.map_structure(lambda *values: np.concatenate(values), *parts)


def callback_list(model: Any, callbacks: Any, package: str, verbose: Any, epochs: int, steps: int) -> Any:
    """Keras' list of callbacks; the one of `fit` is handed on to `evaluate` as it is."""
    kind = keras2.module("callbacks", package).CallbackList
    if isinstance(callbacks, kind):
        return callbacks
    verbose = 1 if verbose == "auto" else verbose
    return kind(
        callbacks,
        add_history=True,
        add_progbar=verbose != 0,
        model=model,
        verbose=verbose,
        epochs=epochs,
        steps=steps,
    )


def in_order(logs: dict[str, Any], names: list[str]) -> Any:
    """Metrics as `evaluate` gives them: by the model's names, then others; a single one alone."""
    values = [logs[name] for name in names if name in logs]
    values += [logs[name] for name in sorted(logs) if name not in names]
    return values[0] if len(values) == 1 else values


def plain(value: Any) -> Any:
    """A Python number of a scalar, anything else as it is."""
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0 else value
