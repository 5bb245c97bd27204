"""`tensorflow.python.ipu.data.ops.dataset_ops`: datasets truncated to a multiple of a batch count.

`UnaryUnchangedStructureDataset` checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.tf_private import datasets as tf_datasets
from tf_ipu_shim.tf_private.datasets import data_nest as nest
from tf_ipu_shim.tf_private.datasets import dataset_ops


class BufferDataset(dataset_ops.UnaryUnchangedStructureDataset):
    """Yields elements in multiples of a size; leftover elements are dropped.

    Args:
        input_dataset: a `tf.data.Dataset`.
        buffer_size: elements that belong together; the last ones are left out if they are fewer.

    Raises:
        ValueError: the size is below one.

    Source: `tensorflow.python.ipu.data.ops.dataset_ops.BufferDataset`.

    Example:
        >>> len(list(BufferDataset(tf.data.Dataset.range(10), 4)))
        8
    """

    def __init__(self, input_dataset: Any, buffer_size: int) -> None:
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1. It is {buffer_size}. Pass at least 1.")
        self._input_dataset = input_dataset
        self._buffer_size = buffer_size

        def elements(*parts: Any) -> Any:
            windows = parts[0] if len(parts) == 1 else parts
            return windows if not nest.is_nested(windows) else dataset_ops.DatasetV2.zip(windows)

        self._whole = input_dataset.window(buffer_size, drop_remainder=True).flat_map(elements)
        super().__init__(input_dataset, tf_datasets.variant_tensor(self._whole))
