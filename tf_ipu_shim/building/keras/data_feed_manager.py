"""`keras.ipu.extensions.data_feed_manager`: the queues of a model, one pair for each of fit, evaluate and predict.

A compiled program knows its queues by name. So a queue outlives the call that made it: a later dataset of the same
element structure is put into the same queue, and the program need not be compiled again.
"""

from __future__ import annotations

import sys
from typing import Any

from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes, ops

from tf_ipu_shim import keras2
from tf_ipu_shim.building.feeds import feed_arguments
from tf_ipu_shim.building.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.building.feeds.ipu_outfeed_queue import IPUOutfeedQueue


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
        self._infeeds: dict[str, list[tuple[IPUInfeedQueue, dict[str, Any]]]] = {}

    def get_infeed(self, mode: str, dataset: Any, infeed_kwargs: dict[str, Any]) -> IPUInfeedQueue:
        """The infeed of a mode, at the beginning of a dataset.

        Args:
            mode: `"fit"`, `"evaluate"` or `"predict"`.
            dataset: whose elements are fed.
            infeed_kwargs: keyword arguments of `IPUInfeedQueue`.
        """
        for known, options in self._infeeds.get(mode, []):
            if options == infeed_kwargs and _same_elements(known._structure, dataset):
                with ops.device("/device:CPU:0"):
                    known._dataset = dataset.prefetch(known._prefetch_depth)
                known._initialize()
                return known
        infeed = _Infeed(dataset, **infeed_kwargs)
        self._infeeds.setdefault(mode, []).append((infeed, dict(infeed_kwargs)))
        return infeed

    def reset(self) -> None:
        """Forgets all infeeds."""
        self._infeeds.clear()


class _Infeed(IPUInfeedQueue):
    """A model's infeed. Labels of 64 bits are what NumPy makes of whole numbers, and losses cast them.

    Layers cast double numbers, except with `disable_v2_dtype_behavior()`.
    """

    def _check_types(self) -> None:
        if not keras2.module("engine.base_layer_utils").v2_dtype_behavior_enabled():
            doubles = [kind if kind == dtypes.float64 else dtypes.float32 for kind in self._types]
            feed_arguments.check_types(doubles, self._id)

    def __del__(self) -> None:
        """The model's programs, which alone know the queue, go with it; its dataset has threads, which would stay."""
        if getattr(self, "_initialized", False) and not sys.is_finalizing():
            with context.eager_mode():
                _ = self.deleter


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
        """The outfeed of a mode.

        Args:
            mode: `"fit"`, `"evaluate"` or `"predict"`.
            outfeed_kwargs: keyword arguments of `IPUOutfeedQueue`.
        """
        known, options = self._outfeeds.get(mode, (None, {}))
        if known is not None and options == outfeed_kwargs:
            return known
        outfeed = IPUOutfeedQueue(**outfeed_kwargs)
        self._outfeeds[mode] = (outfeed, dict(outfeed_kwargs))
        return outfeed

    def reset(self) -> None:
        """Forgets all outfeeds."""
        self._outfeeds.clear()


def _same_elements(known: Any, dataset: Any) -> bool:
    return dataset_ops.get_structure(dataset) == known
