"""`keras.ipu.extensions.polling_thread`: calls callbacks with results while the program is still running."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import errors as tf_errors
from tensorflow.compat.v2 import nest

_PAUSE = 0.001  # seconds; the program has just sent nothing new


class PollingThread(threading.Thread):
    """Empties an outfeed while a program fills it.

    Args:
        output_iterator: an `IPUOutfeedQueue` in mode `ALL`.
        num_steps: mini-batches of the execution.
        replication_factor: number of replicas.
        batch_begin_fn: called with the number of a mini-batch.
        batch_end_fn: called with the number of a mini-batch and its results.
        unpack_step_results: whether the results of a mini-batch are a tuple of one element, which is unpacked.

    Source: `keras.ipu.extensions.polling_thread.PollingThread`.

    Example:
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> step = tf.function(lambda: ipu.loops.repeat(2, lambda x: (2.0 * x, outfeed.enqueue(x)), [1.0]))
        >>> last, begun, ended = strategy.run(step), [], []
        >>> thread = PollingThread(outfeed, 2, 1, begun.append, lambda number, x: ended.append((number, float(x))))
        >>> thread.start()
        >>> thread.join()
        >>> begun, ended
        ([0, 1], [(0, 1.0), (1, 2.0)])
    """

    def __init__(
        self,
        output_iterator: Any,
        num_steps: int,
        replication_factor: int,
        batch_begin_fn: Callable[[int], None],
        batch_end_fn: Callable[[int, Any], None],
        unpack_step_results: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self.caller = threading.get_ident()  # waits for this thread when its program has ended
        self._outfeed = output_iterator
        self._num_steps = num_steps
        self._replication_factor = replication_factor
        self._begin = batch_begin_fn
        self._end = batch_end_fn
        self._unpack = unpack_step_results
        self._cancelled = threading.Event()
        self._backlog: collections.deque[Any] = collections.deque()  # results that have come, and no callback has seen
        self._taking = threading.Lock()
        self._drained = False
        self._error: BaseException | None = None
        self._result: Any = None
        self.convert: Callable[[Any], Any] = lambda results: results
        self.unpack: Callable[[Any], Any] = lambda results: results

    def cancel(self) -> None:
        """Tells the thread that no more results follow."""
        self._cancelled.set()

    def cancelled(self) -> bool:
        """Returns whether the thread was told to stop."""
        return self._cancelled.is_set()

    def get_result(self) -> Any:
        """Returns the results of the last mini-batch.

        Raises:
            BaseException: the exception that a callback raised.
        """
        if self._error is not None:
            raise self._error
        return self._result

    def postprocess(self, num_samples_processed: int) -> None:
        """Runs after the last mini-batch's results."""

    def run(self) -> None:
        """Calls the callbacks for each mini-batch, in order."""
        try:
            done = 0
            started = False
            while done < self._num_steps and not self.cancelled():
                if not started:
                    self._begin(done)
                    started = True
                for results in self._pop_arrived():
                    if not started:
                        self._begin(done)
                    self._consume(done, results)
                    done, started = done + 1, False
            self.postprocess(done)
        except BaseException as error:  # raised again by `get_result`, in the thread that trains
            self._error = error

    def _consume(self, step: int, results: Any) -> None:
        self._result = self.convert(nest.map_structure(lambda value: value.numpy(), results))
        self._end(step, self._result)

    def drain(self) -> None:
        """Dequeues all elements of a program that has ended, so that it can run again."""
        with self._taking:
            self._drained = True
            self._backlog.extend(self._dequeue())

    def _pop_arrived(self) -> list[Any]:
        """Returns the results of mini-batches since the last call."""
        with self._taking:
            if not self._drained:
                self._backlog.extend(self._dequeue())
            arrived = list(self._backlog)
            self._backlog.clear()
        if not arrived:
            time.sleep(_PAUSE)
        return arrived

    def _dequeue(self) -> list[Any]:
        try:
            if not self._outfeed.enqueued:
                raise ValueError("not traced yet")
            outputs = self._outfeed.dequeue()
        except (ValueError, tf_errors.OpError):
            return []
        outputs = self.unpack(outputs)
        flat = nest.flatten(outputs)
        count = int(flat[0].shape[0]) if flat else 0
        elements = [nest.map_structure(lambda value, at=at: value[at], outputs) for at in range(count)]
        return [element[0] for element in elements] if self._unpack else elements


class PollingThreadPredict(PollingThread):
    """The same for predictions, which it keeps.

    Source: `keras.ipu.extensions.polling_thread.PollingThreadPredict`.
    """

    def run(self) -> None:
        """Calls the callbacks for each mini-batch, in order, and puts the predictions together."""
        self._parts: list[Any] = []
        super().run()

    def _consume(self, step: int, results: Any) -> None:
        from tf_ipu_shim.frontend.keras.training.extensions_util import merge_into_batch_dimension

        merged = merge_into_batch_dimension(
            nest.map_structure(lambda value: value[None], results), self._replication_factor
        )
        outputs = nest.map_structure(lambda value: value.numpy(), merged)
        self._parts.append(outputs)
        self._end(step, {"outputs": outputs})

    def postprocess(self, num_samples_processed: int) -> None:
        """Concatenates the predictions of all mini-batches."""
        import numpy as np

        if self._parts:
            self._result = nest.map_structure(lambda *values: np.concatenate(values), *self._parts)
