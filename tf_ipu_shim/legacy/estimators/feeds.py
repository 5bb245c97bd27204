"""Creates an estimator's infeed and outfeed with its session, and frees them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.legacy.estimators.run_config import IPURunConfig
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.training import session_run_hook


class Feeds(session_run_hook.SessionRunHook):
    """An infeed for a dataset and an outfeed for the program's results; a hook of the session.

    Args:
        dataset: the result of `input_fn`.
        config: the configuration of the estimator.

    Raises:
        ValueError: it is not a dataset, or its elements are tuples of another length than two.
    """

    def __init__(self, dataset: Any, config: IPURunConfig) -> None:
        if not isinstance(dataset, dataset_ops.DatasetV2):
            raise ValueError(
                f"input_fn must return Dataset, but it returned {type(dataset).__name__}. The elements go to the IPU "
                "by an infeed; use tf.data.Dataset.from_tensors for a single one."
            )
        spec = dataset_ops.get_structure(dataset)
        if isinstance(spec, tuple) and not hasattr(spec, "_fields") and len(spec) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple. The elements of its dataset are tuples "
                f"of {len(spec)}. Return tuples of features and labels."
            )
        self.infeed = IPUInfeedQueue(dataset, device_ordinal=config.ordinal, prefetch_depth=config.prefetch_depth)
        self.outfeed = IPUOutfeedQueue(device_ordinal=config.ordinal)
        self._start: Any = None
        self._free: list[Any] = []

    def begin(self) -> None:
        """Makes the operations, before the graph is closed."""
        self._start = self.infeed.initializer
        self._free = [self.infeed.deleter, *([self.outfeed.deleter] if self.outfeed.enqueued else [])]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the dataset from its beginning: in a session that replaces a failed one, too."""
        session.run(self._start)

    def end(self, session: Any) -> None:
        """Frees the queues."""
        session.run(self._free)


class EvaluationFeeds(Feeds):
    """Feeds whose metrics include the results that a loop sent before the dataset's end cut it short.

    Attributes:
        sent: the values that a loop sends, in the metrics' form.
        metrics: the metrics by name, pairs of a value and an update; TensorFlow's estimator puts the loss among them.
        counted_on_ipu: updates that need no sent values.
    """

    sent: Any = None
    metrics: Mapping[str, Any] = {}
    counted_on_ipu: Collection[Any] = ()

    def begin(self) -> None:
        """Makes the operations, before the graph is closed."""
        super().begin()
        self._left = nest.flatten(self.outfeed.dequeue())
        updates = [update for _, update in self.metrics.values()]
        self._updates = [update for update in updates if not any(update is one for one in self.counted_on_ipu)]

    def end(self, session: Any) -> None:
        """Adds the remaining results, and frees the queues."""
        remaining = session.run(self._left)
        if len(remaining[0]):
            session.run(self._updates, dict(zip(nest.flatten(self.sent), remaining)))
        super().end(session)


class PredictionFeeds(Feeds):
    """Feeds that keep the results that a loop sent before the dataset's end cut it short.

    Attributes:
        rest: these predictions, as dequeued; None if nothing is left.
    """

    rest: Any = None

    def begin(self) -> None:
        """Makes the operations, before the graph is closed."""
        super().begin()
        self._left = self.outfeed.dequeue()

    def end(self, session: Any) -> None:
        """Dequeues the remaining results, and frees the queues."""
        remaining = session.run(self._left)
        self.rest = remaining if len(nest.flatten(remaining)[0]) else None
        super().end(session)
