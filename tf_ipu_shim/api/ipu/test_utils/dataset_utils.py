"""`tensorflow.python.ipu.test_utils.dataset_utils`: datasets with increasing elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.tensors import dtypes

_DATA = (1, 32, 32, 4)
_LABEL = (1, 8)


def create_multi_increasing_dataset(
    value: int, shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None, repeat: bool = True
) -> Any:
    """Returns a dataset of tuples; all of element `i` is `i`.

    Args:
        value: number of elements.
        shapes: the shapes of the parts of each element.
        dtypes: the dtypes of the parts; float32 by default.
        repeat: whether it begins again at its end.

    Source: `tensorflow.python.ipu.test_utils.dataset_utils.create_multi_increasing_dataset`.

    Example:
        >>> [tensor.shape for tensor in next(iter(create_multi_increasing_dataset(4, [[2], []])))]
        [TensorShape([2]), TensorShape([])]
    """
    shapes = [_DATA, _LABEL] if shapes is None else shapes
    types = [np.float32] * len(shapes) if dtypes is None else dtypes
    dataset = _counting(value).map(lambda value_: tuple(_filled(value_, s, t) for s, t in zip(shapes, types)))
    return dataset.repeat() if repeat else dataset


def create_dual_increasing_dataset(
    value: int, data_shape: Any = None, label_shape: Any = None, dtype: Any = np.float32, repeat: bool = True
) -> Any:
    """Returns a dataset of data and labels; all of element `i` is `i`.

    Args:
        value: number of elements.
        data_shape: the shape of the data.
        label_shape: the shape of the labels.
        dtype: the dtype of both.
        repeat: whether it begins again at its end.

    Source: `tensorflow.python.ipu.test_utils.dataset_utils.create_dual_increasing_dataset`.

    Example:
        >>> dataset = create_dual_increasing_dataset(10, data_shape=[4, 4], label_shape=[4])
    """
    shapes = [_DATA if data_shape is None else data_shape, _LABEL if label_shape is None else label_shape]
    return create_multi_increasing_dataset(value, shapes, [dtype, dtype], repeat)


def create_single_increasing_dataset(
    value: int, shape: Any = None, dtype: Any = np.float32, repeat: bool = True
) -> Any:
    """Returns a dataset of tuples of one tensor each; all of element `i` is `i`.

    Args:
        value: number of elements.
        shape: the shape of the elements.
        dtype: the dtype of the elements.
        repeat: whether it begins again at its end.

    Source: `tensorflow.python.ipu.test_utils.dataset_utils.create_single_increasing_dataset`.

    Example:
        >>> [tensor.shape for tensor in next(iter(create_single_increasing_dataset(10, shape=[4, 4])))]
        [TensorShape([4, 4])]
    """
    return create_multi_increasing_dataset(value, [_DATA if shape is None else shape], [dtype], repeat)


def _counting(value: int) -> Any:
    return dataset_ops.Dataset.range(value)


def _filled(value_: Any, shape: Any, dtype: Any) -> Any:
    return array_ops.broadcast_to(math_ops.cast(value_, dtypes.as_dtype(dtype)), shape)
