"""Restores dataset statistics (TensorFlow 1.13 to 2.7), whose ops still exist without Python wrappers.

`tf.data.experimental.StatsAggregator`, `latency_stats`, `bytes_produced_stats`, and `experimental_stats` of
`tf.data.Options`. Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches

_MODULES = ("tensorflow._api.v2.data.experimental", "tensorflow._api.v2.compat.v1.data.experimental")
_WHY = "statistics of datasets, which scripts write as summaries"


def install() -> None:
    """Adds the names to `tf.data`, if it has none of them. TensorFlow is imported already."""
    from tf_ipu_shim.tf_private.datasets import dataset_ops, options

    names: dict[str, Any] = {
        "StatsAggregator": StatsAggregator,
        "StatsOptions": StatsOptions,
        "latency_stats": latency_stats,
        "bytes_produced_stats": bytes_produced_stats,
    }
    for module in filter(None, map(sys.modules.get, _MODULES)):
        for name, value in names.items():
            if not hasattr(module, name):
                patches.replace(module, name, functools.partial(_instead, value), why=_WHY)
    if not hasattr(options.Options, "experimental_stats"):
        patches.replace(options.Options, "experimental_stats", lambda _: property(_read, _write), why=_WHY)
        patches.replace(dataset_ops.DatasetV2, "with_options", _with_statistics, why=_WHY)


def _instead(value: Any, stock: Any) -> Any:
    return value


class StatsAggregator:
    """Collects the statistics of the datasets whose options name it.

    Source: `tf.data.experimental.StatsAggregator` of TensorFlow 1.15.

    Example:
        >>> tf.data.experimental.StatsAggregator().get_summary().dtype
        tf.string
    """

    def __init__(self) -> None:
        from tf_ipu_shim.tf_private.datasets import gen_experimental_dataset_ops

        self._resource = gen_experimental_dataset_ops.stats_aggregator_handle()

    def get_summary(self) -> Any:
        """Returns a serialised `Summary` of the statistics so far: a scalar string.

        Example:
            >>> tf.data.experimental.StatsAggregator().get_summary().shape
            TensorShape([])
        """
        from tf_ipu_shim.tf_private.datasets import gen_experimental_dataset_ops

        return gen_experimental_dataset_ops.stats_aggregator_summary(self._resource)


class StatsOptions:
    """The value of `experimental_stats` in `tf.data.Options`.

    Attributes:
        aggregator: a `StatsAggregator`; None: nothing is collected.
        prefix: before the names of statistics that a dataset yields of itself.
        counter_prefix: before the names of its counters.

    Source: `tf.data.experimental.StatsOptions` of TensorFlow 1.15.

    Example:
        >>> tf.data.Options().experimental_stats.aggregator is None
        True
    """

    def __init__(self) -> None:
        self.aggregator: StatsAggregator | None = None
        self.prefix = ""
        self.counter_prefix = ""


def latency_stats(tag: str) -> Callable[[Any], Any]:
    """Returns a transformation that collects how long each element of a dataset took to make, in microseconds.

    Args:
        tag: the name in the summary.

    Returns:
        A function for `tf.data.Dataset.apply`.

    Source: `tf.data.experimental.latency_stats` of TensorFlow 1.15.

    Example:
        >>> dataset = tf.data.Dataset.range(3).apply(tf.data.experimental.latency_stats("time"))
        >>> [int(element) for element in dataset]
        [0, 1, 2]
    """
    return _transformation("latency_stats_dataset", tag)


def bytes_produced_stats(tag: str) -> Callable[[Any], Any]:
    """Returns a transformation that collects how many bytes each element of a dataset has.

    Args:
        tag: the name in the summary.

    Returns:
        A function for `tf.data.Dataset.apply`.

    Source: `tf.data.experimental.bytes_produced_stats` of TensorFlow 1.15.

    Example:
        >>> dataset = tf.data.Dataset.range(3).apply(tf.data.experimental.bytes_produced_stats("bytes"))
        >>> [int(element) for element in dataset]
        [0, 1, 2]
    """
    return _transformation("bytes_produced_stats_dataset", tag)


def _transformation(op: str, tag: str) -> Callable[[Any], Any]:
    def transform(dataset: Any) -> Any:
        return _of_same_elements(op, dataset, tag)

    return transform


def _of_same_elements(op: str, dataset: Any, *arguments: Any) -> Any:
    """Returns a dataset of the same elements that an op makes of another one."""
    from tf_ipu_shim.tf_private import datasets as tf_datasets
    from tf_ipu_shim.tf_private.datasets import dataset_ops, gen_experimental_dataset_ops

    variant = getattr(gen_experimental_dataset_ops, op)(
        tf_datasets.variant_tensor(dataset), *arguments, **tf_datasets.flat_structure(dataset)
    )
    dataset_copy = dataset_ops.UnaryUnchangedStructureDataset(dataset, variant)
    is_first = isinstance(dataset, dataset_ops.DatasetV1)
    return dataset_ops.DatasetV1Adapter(dataset_copy) if is_first else dataset_copy


def _read(options: Any) -> StatsOptions:
    if not hasattr(options, "_ipu_statistics"):
        _write(options, StatsOptions())
    return options._ipu_statistics


def _write(options: Any, value: StatsOptions) -> None:
    object.__setattr__(options, "_ipu_statistics", value)  # its class lets only its own options be set


def _with_statistics(stock: Callable[..., Any]) -> Callable[..., Any]:
    def with_options(self: Any, options: Any, name: Any = None) -> Any:
        options_dataset = stock(self, options, name)
        chosen = getattr(options, "_ipu_statistics", None)
        if chosen is None or chosen.aggregator is None:
            return options_dataset
        return _of_same_elements(
            "set_stats_aggregator_dataset",
            options_dataset,
            chosen.aggregator._resource,
            chosen.prefix,
            chosen.counter_prefix,
        )

    return with_options
