"""Imports TensorFlow internals of `tf.data`: datasets, iterators and the structure of elements."""

from __future__ import annotations

from typing import Any

from tensorflow.python.data.experimental.ops import (
    cardinality,  # cardinality with the names of its two codes
)
from tensorflow.python.data.ops import (
    dataset_ops,  # DatasetV2 and V1, the classes, to know and derive them
    iterator_ops,  # OwnedIterator, which is patched for forks
    multi_device_iterator_ops,  # the file that iterators of several devices are from
    options,  # Options, which gets back its statistics
    structured_function,  # StructuredFunctionWrapper, which traces functions of datasets, and is patched
)
from tensorflow.python.data.util import (
    nest as data_nest,  # what tf.data takes apart: not lists
)
from tensorflow.python.data.util import (
    structure,  # an element as flat tensors, and back
)
from tensorflow.python.ops import (
    gen_dataset_ops,  # the ops of iterators
    gen_experimental_dataset_ops,  # the ops of statistics
)


def variant_tensor(dataset: dataset_ops.DatasetV2) -> Any:
    """Returns a dataset as its tensor."""
    return dataset._variant_tensor


def flat_structure(dataset: dataset_ops.DatasetV2) -> Any:
    """Dtypes and shapes as arguments of a dataset's op."""
    return dataset._flat_structure


def iterator_resource(iterator: iterator_ops.OwnedIterator) -> Any:
    """Returns an iterator as its resource."""
    return iterator._iterator_resource


def inputs_of(dataset: dataset_ops.DatasetV2) -> Any:
    """Returns the datasets that a dataset was made of."""
    return dataset._inputs()
