"""Runs fit, evaluate and predict: one program execution at a time, with Keras' callbacks.

The order of callbacks is Keras' own. Between two calls for a batch stands an execution, or, with asynchronous
callbacks, a mini-batch that a thread has seen come out of a running program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, plugin
from tf_ipu_shim.frontend.keras.options.replication import ReplicatedMetricReductionMethod, reduce_metrics
from tf_ipu_shim.frontend.keras.training import polling_thread
from tf_ipu_shim.tf_private import keras_members


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
        turn: a context in which nobody else runs the program, and it takes elements of this call's data.
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
        turn: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.turn = turn
        self._program = program
        self._outfeed = outfeed
        self._unpack = unpack
        self._steps = steps
        self.replicas = replicas
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
        last = nest.map_structure(lambda value: value.numpy(), self._run())
        logs = self.metrics(last)
        end(first + self._steps - 1, logs)
        return logs

    def predictions(
        self, first: int, begin: Callable[[int], None], end: Callable[[int, Any], None], keep: int | None = None
    ) -> Any:
        """Runs once, with the callbacks around it; the arguments of `last_metrics`.

        Args:
            first: number of the first mini-batch.
            begin: called with a mini-batch's number.
            end: called with a mini-batch's number and its predictions.
            keep: mini-batches of all replicas that are the script's; None: all, the data was not padded.

        Returns:
            Predictions of shape [samples, ...].
        """
        from tf_ipu_shim.frontend.keras.training.extensions_util import merge_into_batch_dimension

        keep = None if keep is None else min(keep, self._steps * self.replicas)
        steps = self._steps if keep is None else -(-keep // self.replicas)
        if self._asynchronous:
            begin, end = self._until(first + steps, begin, end, keep)
            return self._kept(self._polled(first, begin, end, polling_thread.PollingThreadPredict), self._steps, keep)
        begin(first)
        outputs = merge_into_batch_dimension(self._run(), self.replicas)
        outputs = nest.map_structure(lambda value: value.numpy(), outputs)
        outputs = self._kept(outputs, self._steps, keep)
        end(first + steps - 1, {"outputs": outputs})
        return outputs

    def _kept(self, outputs: Any, steps: int, keep: int | None) -> Any:
        """The rows of the script's own mini-batches, of those of so many steps."""
        there = steps * self.replicas
        if keep is None or keep >= there:
            return outputs
        return nest.map_structure(lambda value: value[: len(value) // there * keep], outputs)

    def _until(self, limit: int, begin: Any, end: Any, keep: int | None) -> tuple[Any, Any]:
        """Callbacks that are called for no step that only pads the data, and see no row that does."""

        def end_one(step: int, logs: Any) -> None:
            if step < limit:
                last = None if keep is None or step < limit - 1 else (keep - 1) % self.replicas + 1
                end(step, {"outputs": self._kept(logs["outputs"], 1, last)})

        return (lambda step: begin(step) if step < limit else None), end_one

    def metrics(self, values: Any) -> Any:
        """The metrics of a mini-batch as callbacks see them: plain numbers, replicas reduced.

        Args:
            values: arrays, with a replica axis where there are replicas.
        """
        return nest.map_structure(plain, reduce_metrics(values, self.replicas, self._reduction))

    def _run(self) -> Any:
        """Runs once, and gives what was sent."""
        with self.turn():
            self._forget()
            self._program()
            return self._sent()

    def _sent(self) -> Any:
        return self._unpack(self._outfeed.results(self._steps, self.replicas))

    def _forget(self) -> None:
        """Forgets what an execution has sent and nobody took: it failed, or Ctrl-C came then."""
        plugin.load().delete_outfeed(self._outfeed._id)

    def _polled(self, first: int, begin: Any, end: Any, kind: type) -> Any:
        thread = kind(
            self._outfeed,
            self._steps,
            self.replicas,
            lambda step: begin(first + step),
            lambda step, results: end(first + step, results),
        )
        thread.convert, thread.unpack = self.metrics, self._unpack
        try:
            with self.turn():
                self._forget()
                thread.start()
                self._program()
                thread.drain()
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
    keras_members.train_counter(model).assign(0)
    callbacks.on_train_begin()
    epoch_logs: Any = None
    for epoch, execution in run:
        with execution.turn():
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
    return keras_members.history_of(callbacks) or model.history  # another thread's call may have put its own there


def evaluate(model: Any, handler: Any, callbacks: Any, run: Any) -> dict[str, Any]:
    """One pass over the data; the arguments of `fit`.

    Returns:
        The metrics after the last mini-batch.
    """
    keras_members.test_counter(model).assign(0)
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
    keras_members.predict_counter(model).assign(0)
    callbacks.on_predict_begin()
    parts = []
    begin, end = callbacks.on_predict_batch_begin, callbacks.on_predict_batch_end
    for _, execution in run:
        for step in handler.steps():
            keep = handler.mini_batches - step * execution.replicas if handler.padding else None
            parts.append(execution.predictions(step, begin, end, keep))
    if handler.padding:
        keras_members.predict_counter(model).assign(handler.inferred_steps)
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
