"""Runs fit, evaluate and predict: one program execution at a time, with Keras' callbacks.

`fit`, `evaluate` and `predict` below read from top to bottom. `ModelCall` prepares the program and data of an epoch as
an `Execution`, which runs the program once. Between two batch callbacks is one execution or, with asynchronous
callbacks, one mini-batch that a polling thread has dequeued from the running program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, plugin
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedMode
from tf_ipu_shim.frontend.keras.options.replication import ReplicatedMetricReductionMethod, reduce_metrics
from tf_ipu_shim.frontend.keras.training import locks, partial_batches, polling_thread
from tf_ipu_shim.frontend.keras.training.data_feed_manager import InfeedIterator
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.tf_private import keras_members


class ModelCall:
    """One call of `fit`, `evaluate` or `predict`: prepares an `Execution` for each epoch. Entered around the epochs.

    Args:
        model: a Keras model with IPU extensions.
        mode: `"fit"`, `"evaluate"` or `"predict"`.
        callbacks: Keras' list, whose number of steps is corrected if tracing the program changes it; None: none.
    """

    def __init__(self, model: Any, mode: str, handler: Any, callbacks: Any = None) -> None:
        self._model, self._mode, self._handler, self._callbacks = model, mode, handler, callbacks
        self._iterator: InfeedIterator | None = None
        self._choose_queues()

    def __enter__(self) -> ModelCall:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end_metrics()

    def start_epoch(self) -> Execution:
        """Returns the program with the next epoch's data, ready to run."""
        model = self._model
        program = self._find_program()
        while model._stages_need_trace(self._mode) and model._trace_finds_stages(
            program, self._handler, self._callbacks
        ):
            self._callbacks = self._iterator = None
            self._end_metrics()
            self._choose_queues()
            program = self._find_program()
        partial_batches.check_padding(model, program, self._handler, self.replicas)
        if self._mode == "fit":
            model.train_tf_function = program.function  # its graph is what TensorBoard shows
        return Execution(self, program, self._iterator)

    def hold(self, iterator: Any) -> Any:
        """Returns a context in which only this call runs the model's program, on the data of its iterator."""
        return self._model._ipu.locks.hold_for_call(self._model, self._mode, iterator, self._fit_metrics)

    def unpack(self, dequeued: Any) -> Any:
        """Converts the outfeed's results to metrics or predictions."""
        return self._model._result_unpacker(self._mode)(dequeued)

    def _choose_queues(self) -> None:
        """Sets the values that depend on the number of replicas, which changes if tracing finds pipeline stages."""
        model, options = self._model, self._model._ipu.options
        self._steps_per_execution = self._handler.steps_per_execution_value
        self.replicas = model._replicas()
        accumulates = model._accumulates_outfeed(self._mode)
        # Nothing comes out of a running program whose outfeeds are synthetic.
        polls = options.asynchronous_callbacks and not flags.current().is_synthetic("outfeed")
        self.is_asynchronous = polls and not accumulates
        every = self._mode == "predict" or self.is_asynchronous or accumulates
        outfeed_mode = IPUOutfeedMode.ALL if every else IPUOutfeedMode.LAST
        self.outfeed = model._ipu.outfeeds.get_outfeed(
            self._mode, {**options.outfeed_kwargs, "outfeed_mode": outfeed_mode}
        )
        self.reduction = ReplicatedMetricReductionMethod.parse(options.metric_reduction)
        self.steps = self._handler.reported_steps
        self._fit_metrics = locks.FitMetrics(self.replicas) if self._mode == "fit" else None

    def _find_program(self) -> Any:
        state = self._model._ipu
        self._iterator = self._handler.epoch_iterator(
            self._iterator, state.infeeds, self._mode, state.options.infeed_kwargs
        )
        return self._model._get_program(
            self._mode, self._iterator.infeed, self.outfeed, self._steps_per_execution, self.replicas
        )

    def _end_metrics(self) -> None:
        if self._fit_metrics is not None:
            self._fit_metrics.ended = True


class Execution:
    """A program with its queues, ready to run.

    Args:
        call: the call of `fit`, `evaluate` or `predict`.
        iterator: the epoch's data.
    """

    def __init__(self, call: ModelCall, program: Callable[[], None], iterator: InfeedIterator | None) -> None:
        self._call, self._program, self._iterator = call, program, iterator
        self._steps, self.replicas = call.steps, call.replicas

    def hold(self) -> Any:
        """Returns a context in which only this call runs the program."""
        return self._call.hold(self._iterator)

    def last_metrics(self, first: int, begin: Callable[[int], None], end: Callable[[int, Any], None]) -> Any:
        """Runs once, with the callbacks around it."""
        if self._call.is_asynchronous:
            return self._run_polled(first, begin, end, polling_thread.PollingThread)
        begin(first)
        last = nest.map_structure(lambda value: value.numpy(), self._run())
        logs = self.metrics(last)
        end(first + self._steps - 1, logs)
        return logs

    def predictions(
        self, first: int, begin: Callable[[int], None], end: Callable[[int, Any], None], keep: int | None = None
    ) -> Any:
        """Runs once, with the callbacks around it; the arguments of `last_metrics`."""
        from tf_ipu_shim.frontend.keras.training.extensions_util import merge_into_batch_dimension

        keep = None if keep is None else min(keep, self._steps * self.replicas)
        steps = self._steps if keep is None else -(-keep // self.replicas)
        if self._call.is_asynchronous:
            begin, end = self._limit_callbacks(first + steps, begin, end, keep)
            return self._drop_padding(
                self._run_polled(first, begin, end, polling_thread.PollingThreadPredict), self._steps, keep
            )
        begin(first)
        outputs = merge_into_batch_dimension(self._run(), self.replicas)
        outputs = nest.map_structure(lambda value: value.numpy(), outputs)
        outputs = self._drop_padding(outputs, self._steps, keep)
        end(first + steps - 1, {"outputs": outputs})
        return outputs

    def _drop_padding(self, outputs: Any, steps: int, keep: int | None) -> Any:
        """Drops the rows of padding from the outputs of some steps."""
        run_batches = steps * self.replicas
        if keep is None or keep >= run_batches:
            return outputs
        return nest.map_structure(lambda value: value[: len(value) // run_batches * keep], outputs)

    def _limit_callbacks(self, limit: int, begin: Any, end: Any, keep: int | None) -> tuple[Any, Any]:
        """Wraps the callbacks so that they skip steps that only pad the data, and see no padded rows."""

        def end_one(step: int, logs: Any) -> None:
            if step < limit:
                last = None if keep is None or step < limit - 1 else (keep - 1) % self.replicas + 1
                end(step, {"outputs": self._drop_padding(logs["outputs"], 1, last)})

        return (lambda step: begin(step) if step < limit else None), end_one

    def metrics(self, values: Any) -> Any:
        """Returns the metrics of a mini-batch as callbacks see them: plain numbers, replicas reduced."""
        return nest.map_structure(to_python, reduce_metrics(values, self.replicas, self._call.reduction))

    def _run(self) -> Any:
        """Runs once and returns the elements that the program enqueued."""
        with self.hold():
            self._clear_outfeed()
            self._program()
            return self._dequeue()

    def _dequeue(self) -> Any:
        return self._call.unpack(self._call.outfeed.results(self._steps, self.replicas))

    def _clear_outfeed(self) -> None:
        """Drops the outfeed elements of an execution that failed or was interrupted by Ctrl-C."""
        plugin.load().delete_outfeed(self._call.outfeed._id)

    def _run_polled(self, first: int, begin: Any, end: Any, kind: type) -> Any:
        thread = kind(
            self._call.outfeed,
            self._steps,
            self.replicas,
            lambda step: begin(first + step),
            lambda step, results: end(first + step, results),
        )
        thread.convert, thread.unpack = self.metrics, self._call.unpack
        try:
            with self.hold():
                self._clear_outfeed()
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


def fit(model: Any, handler: Any, callbacks: Any, validate: Callable[[int], dict[str, Any]] | None) -> Any:
    """Trains for all epochs and returns the history."""
    model.stop_training = False
    keras_members.train_counter(model).assign(0)
    callbacks.on_train_begin()
    epoch_logs: Any = None
    with ModelCall(model, "fit", handler) as call:
        for epoch in handler.epochs:
            execution = call.start_epoch()
            with execution.hold():
                model.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = None
            for step in handler.steps():
                logs = execution.last_metrics(step, callbacks.on_train_batch_begin, callbacks.on_train_batch_end)
                if model.stop_training:
                    break
            if logs is None:
                raise ValueError(
                    "Expect x to be a non-empty array or dataset: `x` of fit, evaluate or predict has no data. Pass at "
                    "least one mini-batch."
                )
            epoch_logs = copy.copy(logs)
            if validate is not None:
                epoch_logs.update(validate(epoch))
            callbacks.on_epoch_end(epoch, epoch_logs)
            if model.stop_training:
                break
            handler.end_epoch()
    if hasattr(model.optimizer, "finalize_variable_values") and epoch_logs is not None:
        model.optimizer.finalize_variable_values(model.trainable_variables)
    callbacks.on_train_end(logs=epoch_logs)
    return keras_members.history_of(callbacks) or model.history  # another thread's call may have put its own there


def evaluate(model: Any, handler: Any, callbacks: Any) -> dict[str, Any]:
    """Computes loss and metrics in one pass over the data; the arguments of `fit`."""
    keras_members.test_counter(model).assign(0)
    callbacks.on_test_begin()
    logs: Any = {}
    with ModelCall(model, "evaluate", handler, callbacks) as call:
        for _ in handler.epochs:
            execution = call.start_epoch()
            model.reset_metrics()
            for step in handler.steps():
                logs = execution.last_metrics(step, callbacks.on_test_batch_begin, callbacks.on_test_batch_end)
            handler.end_epoch()
    callbacks.on_test_end(logs=logs)
    return logs


def predict(model: Any, handler: Any, callbacks: Any) -> Any:
    """Computes predictions in one pass over the data; the arguments of `fit`."""
    keras_members.predict_counter(model).assign(0)
    callbacks.on_predict_begin()
    parts = []
    begin, end = callbacks.on_predict_batch_begin, callbacks.on_predict_batch_end
    with ModelCall(model, "predict", handler, callbacks) as call:
        for _ in handler.epochs:
            execution = call.start_epoch()
            for step in handler.steps():
                keep = handler.mini_batches - step * execution.replicas if handler.padding else None
                parts.append(execution.predictions(step, begin, end, keep))
            handler.end_epoch()
    if handler.padding:
        keras_members.predict_counter(model).assign(handler.inferred_steps)
    callbacks.on_predict_end()
    if not parts:
        raise ValueError(
            "Expect x to be a non-empty array or dataset: `x` of fit, evaluate or predict has no data. Pass at "
            "least one mini-batch."
        )
    return nest.map_structure(lambda *values: np.concatenate(values), *parts)


def callback_list(model: Any, callbacks: Any, package: str, verbose: Any, epochs: int, steps: int) -> Any:
    """Keras' list of callbacks; `evaluate` inside `fit` uses the list of `fit`."""
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


def order_metrics(logs: dict[str, Any], names: list[str]) -> Any:
    """Metrics as `evaluate` returns them: in the order of the model's names, then others; a single one as a scalar."""
    values = [logs[name] for name in names if name in logs]
    values += [logs[name] for name in sorted(logs) if name not in names]
    return values[0] if len(values) == 1 else values


def to_python(value: Any) -> Any:
    """Converts a scalar array to a Python number; returns anything else unchanged."""
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0 else value
