"""Distributed datasets with a length and access to the original dataset.

Graphcore's strategies return datasets as long as the script's, and that Keras' `fit` accepts. Subclasses
`input_lib.DistributedDataset` and `DistributedDatasetsFromFunction`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private.datasets import cardinality
from tf_ipu_shim.tf_private.distribute import input_lib


def _dataset_length(self: Any) -> int:
    count = int(self.cardinality)
    if count == cardinality.INFINITE:
        raise TypeError(
            "len() needs a dataset with an end, but this distributed dataset is infinite. Use .take(count)."
        )
    if count == cardinality.UNKNOWN:
        raise TypeError(
            "len() of a distributed dataset whose length is unknown to TensorFlow: it must be known. Set "
            "it with tf.data.experimental.assert_cardinality(count)."
        )
    return count


def _always_true(self: Any) -> bool:
    """Returns True, as for any dataset: also for an empty one, or one of unknown length."""
    return True


def unwrap_dataset(distributed: Any) -> Any:
    """Wraps a script's dataset for distribution by a strategy of one IPU device; returns other values unchanged.

    Example:
        >>> unwrap_dataset(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4))).element_spec.dtype
        tf.int64
    """
    if isinstance(distributed, _SizedDataset):
        return tf_distribute.undistributed(distributed)
    is_of_function = isinstance(distributed, _SizedDatasetsFromFunction)
    return tf_distribute.first_of_functions(distributed) if is_of_function else distributed


# No class that both have as a base: an object takes another class only if that has the same layout.
class _SizedDataset(input_lib.DistributedDataset):
    __len__, __bool__ = _dataset_length, _always_true


class _SizedDatasetsFromFunction(input_lib.DistributedDatasetsFromFunction):
    __len__, __bool__ = _dataset_length, _always_true


_SIZED = {
    input_lib.DistributedDataset: _SizedDataset,
    input_lib.DistributedDatasetsFromFunction: _SizedDatasetsFromFunction,
}


def add_length(distributed: Any) -> Any:
    """Sets the length of a distributed dataset.

    Example:
        >>> len(add_length(strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(4))))
        4
    """
    # TensorFlow's functions choose the class and check the options; only the class that they chose is another one.
    distributed.__class__ = _SIZED.get(type(distributed), type(distributed))
    return distributed
