"""Checks that an optimizer accepts gradients of the accumulator's dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tf_ipu_shim.tf_private.graphs import handle_data_util, ops

_UPDATES = ("ResourceApply", "ResourceSparseApply")


@contextlib.contextmanager
def accept_accumulator_dtype(optimizer: Any, gradients: Sequence[tuple[Any, Any]]) -> Iterator[None]:
    """Marks the time in which an optimizer applies gradients."""
    name = type(getattr(optimizer, "_keras_optimizer", optimizer)).__name__  # of a model, which a pipeline's stands for
    mixed = [(g.dtype.base_dtype, v) for g, v in gradients if g.dtype.base_dtype != v.dtype.base_dtype]
    graph = ops.get_default_graph()
    before = len(graph.get_operations()) if mixed else 0
    try:
        yield
    except (TypeError, ValueError) as error:
        if not mixed:
            raise
        raise _dtype_error(name, *mixed[0]) from error
    if mixed and any(_has_mixed_dtypes(operation) for operation in graph.get_operations()[before:]):
        raise _dtype_error(name, *mixed[0])


def _has_mixed_dtypes(operation: Any) -> bool:
    if not operation.type.startswith(_UPDATES):
        return False
    shape_and_type = handle_data_util.get_resource_handle_data(operation.inputs[0]).shape_and_type
    return bool(shape_and_type) and shape_and_type[0].dtype != operation.get_attr("T").as_datatype_enum


def _dtype_error(name: str, dtype: Any, variable: Any) -> TypeError:
    return TypeError(
        f"gradient_accumulation_dtype accumulates gradients in {dtype.name}, which {name} does not accept "
        f"for weights of {variable.dtype.base_dtype.name} ({variable.name}). Leave it out, or use "
        "an optimizer that casts them, such as AdamIpuOptimizer and SGDIpuOptimizer of ipu_tensorflow_addons."
    )
