"""Infers the size and element shape of a TensorList at its creation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.tf_private.tensors import tensor_util

MAKE = frozenset({"EmptyTensorList", "TensorListReserve"})
"""Ops that make a list without elements, of a shape and for a number that they are given."""


class ListContents(NamedTuple):
    """Element count, dtype and element shape of a TensorList.

    Args:
        capacity: the number of elements that fit; None if it is not known.
        type: `DataType` of an element.
        shape: the shape of an element; None if it is not known.
    """

    capacity: int | None
    type: int
    shape: tuple[int, ...] | None

    @property
    def bytes(self) -> int:
        """Total bytes of all elements; 0 if count or shape is unknown."""
        if self.capacity is None or self.shape is None:
            return 0
        return self.capacity * math.prod(self.shape) * int(dtypes.as_dtype(self.type).size or 0)


def created_list(operation: Any) -> ListContents:
    """Returns the contents of the list that a list-creating op makes.

    Example:
        >>> with tf.Graph().as_default():
        ...     made = tf.raw_ops.TensorListReserve(element_shape=[2, 3], num_elements=4, element_dtype=tf.float32)
        >>> created_list(made.op).bytes
        96
    """
    shape, size = (tensor_util.try_evaluate_constant(tensor) for tensor in operation.inputs)
    capacity = None if size is None or int(size) < 0 else int(size)
    element = None if shape is None or np.ndim(shape) == 0 or np.any(shape < 0) else tuple(map(int, shape))
    return ListContents(capacity, operation.get_attr("element_dtype").as_datatype_enum, element)
