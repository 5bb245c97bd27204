"""`keras.ipu.extensions.data_feed_manager`: a model's infeed and outfeed for each of fit, evaluate and predict.

A compiled program finds its queues by name. So a queue outlives the call that created it. A later call with a dataset
of the same element structure uses the same queue, and the program is not compiled again. Each call has a separate
iterator, which it selects for each execution: calls of several threads, and of callbacks, take turns.
"""

from __future__ import annotations

import sys
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim import keras2, plugin
from tf_ipu_shim.frontend.feeds import feed_arguments, feed_names, null_data
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.frontend.keras.training import locks
from tf_ipu_shim.tf_private import datasets as tf_datasets
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops

_HOST = "/device:CPU:0"


class InfeedManager:
    """Holds the infeed of each mode.

    Source: `keras.ipu.extensions.data_feed_manager.InfeedManager`.

    Example:
        >>> dataset = tf.data.Dataset.from_tensors(1.0).repeat()
        >>> manager = InfeedManager()
        >>> infeed = manager.get_infeed("fit", dataset, {"prefetch_depth": 2})
        >>> manager.get_infeed("fit", dataset, {"prefetch_depth": 2}) is infeed
        True
    """

    def __init__(self) -> None:
        self._infeeds: dict[str, list[tuple[_Infeed, dict[str, Any]]]] = {}

    def get_infeed(self, mode: str, dataset: Any, infeed_kwargs: dict[str, Any]) -> IPUInfeedQueue:
        """Returns the infeed of a mode, at the beginning of a dataset.

        Args:
            mode: `"fit"`, `"evaluate"` or `"predict"`.
            dataset: the dataset whose elements are fed.
            infeed_kwargs: keyword arguments of `IPUInfeedQueue`.
        """
        iterator = self.make_iterator(mode, dataset, infeed_kwargs)
        iterator.select()
        iterator.infeed.selected = iterator
        return iterator.infeed

    def make_iterator(self, mode: str, dataset: Any, infeed_kwargs: dict[str, Any]) -> InfeedIterator:
        """Returns a new iterator over a dataset, for the infeed of a mode; the arguments of `get_infeed`."""
        infeed = self._find_infeed(mode, dataset, infeed_kwargs)
        if infeed is None:
            with locks.build_lock.hold():
                infeed = self._find_infeed(mode, dataset, infeed_kwargs)
                if infeed is None:
                    infeed = _Infeed(dataset, **infeed_kwargs)
                    self._infeeds.setdefault(mode, []).append((infeed, dict(infeed_kwargs)))
        return InfeedIterator(infeed, dataset)

    def _find_infeed(self, mode: str, dataset: Any, infeed_kwargs: dict[str, Any]) -> _Infeed | None:
        for infeed, options in self._infeeds.get(mode, []):
            if options == infeed_kwargs and _has_same_elements(infeed._structure, dataset):
                return infeed
        return None

    def reset(self) -> None:
        """Forgets all infeeds."""
        self._infeeds.clear()


class _Infeed(IPUInfeedQueue):
    """A model's infeed. NumPy makes integer labels 64 bits wide, and losses cast them.

    Layers cast double numbers, except with `disable_v2_dtype_behavior()`.
    """

    selected: InfeedIterator | None = None  # kept for callers without an iterator

    def _make_initializer(self) -> None:
        """Does nothing: each call has a separate iterator."""

    def _check_types(self) -> None:
        if not keras2.module("engine.base_layer_utils").v2_dtype_behavior_enabled():
            doubles = [kind if kind == dtypes.float64 else dtypes.float32 for kind in self._types]
            feed_arguments.check_types(doubles, self._id)

    def __del__(self) -> None:
        """Drops the iterator's selection and the model's programs, which only hold the queue."""
        if getattr(self, "_initialized", False) and not sys.is_finalizing():
            with context.eager_mode():
                _ = self.deleter


class InfeedIterator:
    """One call's iterator over its dataset.

    Args:
        infeed: the infeed whose programs consume its elements while it is selected.
        dataset: a dataset with elements like the infeed's.
    """

    def __init__(self, infeed: _Infeed, dataset: Any) -> None:
        self.infeed = infeed
        self._id = feed_names.unique_name("iterator")
        self._started = False
        with ops.device(_HOST):
            fed = null_data.apply_null_data_flag(dataset.prefetch(infeed._prefetch_depth), infeed._structure)
            plugin.load().ops.ipu_start_infeed(
                dataset=tf_datasets.variant_tensor(fed),
                feed_id=self._id,
                output_types=infeed._types,
                output_shapes=infeed._shapes,
            )
        self._started = True

    def select(self) -> None:
        """Selects this iterator as the source of the infeed's elements."""
        with ops.device(_HOST):
            plugin.load().ops.ipu_select_iterator(feed_id=self.infeed._id, iterator_id=self._id)

    def __del__(self) -> None:
        """Ends the dataset's threads."""
        if getattr(self, "_started", False) and not sys.is_finalizing():
            with context.eager_mode(), ops.device(_HOST):
                plugin.load().ops.ipu_delete_infeed(feed_id=self._id, waits=False)


class OutfeedManager:
    """Holds the outfeed of each mode.

    Source: `keras.ipu.extensions.data_feed_manager.OutfeedManager`.

    Example:
        >>> manager = OutfeedManager()
        >>> outfeed = manager.get_outfeed("fit", {"buffer_depth": 2})
        >>> manager.get_outfeed("fit", {"buffer_depth": 2}) is outfeed
        True
    """

    def __init__(self) -> None:
        self._outfeeds: dict[str, tuple[IPUOutfeedQueue, dict[str, Any]]] = {}

    def get_outfeed(self, mode: str, outfeed_kwargs: dict[str, Any]) -> IPUOutfeedQueue:
        """Returns the outfeed of a mode.

        Args:
            mode: `"fit"`, `"evaluate"` or `"predict"`.
            outfeed_kwargs: keyword arguments of `IPUOutfeedQueue`.
        """
        cached_outfeed, options = self._outfeeds.get(mode, (None, {}))
        if cached_outfeed is not None and options == outfeed_kwargs:
            return cached_outfeed
        with locks.build_lock.hold():
            cached_outfeed, options = self._outfeeds.get(mode, (None, {}))
            if cached_outfeed is not None and options == outfeed_kwargs:
                return cached_outfeed
            outfeed = IPUOutfeedQueue(**outfeed_kwargs)
            self._outfeeds[mode] = (outfeed, dict(outfeed_kwargs))
            return outfeed

    def reset(self) -> None:
        """Forgets all outfeeds."""
        self._outfeeds.clear()


def _has_same_elements(structure: Any, dataset: Any) -> bool:
    return dataset_ops.get_structure(dataset) == structure
