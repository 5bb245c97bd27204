"""Implements `--null_data_feed` of `TF_POPLAR_FLAGS`: infeeds yield zeros without end instead of the dataset."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.tf_private.datasets import dataset_ops, structure
from tf_ipu_shim.tf_private.operations import array_ops


def apply_null_data_flag(dataset: Any, elements: Any) -> Any:
    """Returns a dataset, or with the flag null data in its place."""
    return make_null_dataset(elements) if flags.current().null_data_feed else dataset


def make_null_dataset(elements: Any) -> Any:
    """Returns a dataset of zeros without end."""
    shapes, dtypes = structure.get_flat_tensor_shapes(elements), structure.get_flat_tensor_types(elements)
    zeros = [array_ops.zeros(shape, kind) for shape, kind in zip(shapes, dtypes)]
    return dataset_ops.DatasetV2.from_tensors(structure.from_compatible_tensor_list(elements, zeros)).repeat()
