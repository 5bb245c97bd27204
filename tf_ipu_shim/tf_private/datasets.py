"""Datasets, iterators, and the structure of their elements."""

from __future__ import annotations

from tensorflow.python.data.experimental.ops import (
    cardinality,  # cardinality with the names of its two codes
)
from tensorflow.python.data.ops import (
    dataset_ops,  # DatasetV2 and V1, the classes, to know and derive them
    iterator_ops,  # OwnedIterator, which is patched for forks
    multi_device_iterator_ops,  # the file that iterators of several devices are from
    options,  # Options, which gets back its statistics
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
