"""Imports TensorFlow internals of tensors, type specs, shapes and dtypes."""

from __future__ import annotations

from typing import Any

from tensorflow.python.framework import (
    constant_op,  # constants of a given graph, by the name that gradients use
    dtypes,  # dtypes of references, which version 2 has no name for
    errors_impl,  # the same, with the file that tracebacks leave out
    indexed_slices,  # IndexedSlices and their conversion
    none_tensor,  # NoneTensorSpec: how tf.data says None
    tensor,  # Tensor, the class: `tf.Tensor` is it, but not in TensorFlow 1 mode
    tensor_shape,  # as_shape, Dimension, which version 2 has no name for
    tensor_spec,  # TensorSpec and what of it tf.data keeps
    tensor_util,  # constant_value: the value of a tensor that is known when traced
    type_spec,  # TypeSpec, the base of what tf.data takes apart
)
from tensorflow.python.util import (
    nest,  # the paths of a structure, which `tf.nest` leaves out
)


def is_ref_dtype(dtype: dtypes.DType) -> Any:
    """Returns whether a dtype is a reference's."""
    return getattr(dtype, "_is_ref_dtype", False)
