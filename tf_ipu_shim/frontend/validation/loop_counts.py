"""Checks loop trip counts: Python integers that fit int32, or scalar integer tensors."""

from __future__ import annotations

import numbers
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops
from tf_ipu_shim.tf_private.tensors import tensor_util

_MOST = 2**31 - 1


def check_trip_count(name: str, count: Any) -> Any:
    """Returns a number of iterations.

    Example:
        >>> check_trip_count("repeat(n)", np.int64(3))
        3
    """
    if not isinstance(count, numbers.Integral):
        if count is None:
            raise TypeError(f"{name} is None; expected an integer. Pass one.")
        tensor = ops.convert_to_tensor(count)
        if not tensor.dtype.is_integer:
            raise TypeError(
                f"{name} is a {tensor.dtype.name}; expected an integer number of iterations. Pass an "
                "integer, or cast it: tf.cast(n, tf.int32)."
            )
        if tensor.shape.rank:
            raise ValueError(f"{name} has the shape {tensor.shape}: it has to be a scalar. Pass one of its elements.")
        if tensor_util.is_tf_type(count):
            return tensor if tensor.dtype in (dtypes.int32, dtypes.int64) else math_ops.cast(tensor, dtypes.int64)
        count = tensor_util.constant_value(tensor)
    if int(count) > _MOST:
        raise ValueError(
            f"{name} is {count}; expected at most {_MOST}, as a loop counts its iterations in an "
            "int32. Nest two loops, or run the program again: an infeed continues where it was."
        )
    return int(count)


def check_int32_trip_count(name: str, count: Any) -> Any:
    """Works like `check_trip_count`, for loops that count only in int32; larger tensors are clipped."""
    count = check_trip_count(name, count)
    if isinstance(count, int) or count.dtype == dtypes.int32:
        return count
    return math_ops.cast(math_ops.minimum(count, _MOST), dtypes.int32)
