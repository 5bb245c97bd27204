"""Lists of tensors: what is in one where it is made, as far as that can be told before anything runs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.tf_private.tensors import tensor_util

MAKE = frozenset({"EmptyTensorList", "TensorListReserve"})
"""Ops that make a list without elements, of a shape and for a number that they are given."""


class Listed(NamedTuple):
    """What is in a list of tensors.

    Args:
        room: for so many elements; None where that is not known.
        type: `DataType` of an element.
        shape: of an element; None where it is not known.
    """

    room: int | None
    type: int
    shape: tuple[int, ...] | None

    @property
    def bytes(self) -> int:
        """Of all elements that it has room for; 0 where room or shape are not known."""
        if self.room is None or self.shape is None:
            return 0
        return self.room * math.prod(self.shape) * int(dtypes.as_dtype(self.type).size or 0)


def made_by(operation: Any) -> Listed:
    """The list that an op of `MAKE` gives: TensorFlow evaluates what its size is computed from.

    Args:
        operation: of a TensorFlow graph.

    Example:
        >>> with tf.Graph().as_default():
        ...     made = tf.raw_ops.TensorListReserve(element_shape=[2, 3], num_elements=4, element_dtype=tf.float32)
        >>> made_by(made.op).bytes
        96
    """
    shape, size = (tensor_util.try_evaluate_constant(tensor) for tensor in operation.inputs)
    room = None if size is None or int(size) < 0 else int(size)
    element = None if shape is None or np.ndim(shape) == 0 or np.any(shape < 0) else tuple(map(int, shape))
    return Listed(room, operation.get_attr("element_dtype").as_datatype_enum, element)
