"""Accepts a float16 scale in batch normalisation and its gradients, as Graphcore's TensorFlow does.

The results are the same: the statistics are summed as float32 in both cases. Checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode

_FORWARD = "scale offset mean variance", "batch_mean batch_variance"
_BACKWARD = "scale reserve_space_1 reserve_space_2", "scale_backprop offset_backprop"
# For each op the arguments that stock TensorFlow has as float32 only, and the results.
_OPS = {
    "fused_batch_norm_v2": _FORWARD,
    "fused_batch_norm_v3": _FORWARD,
    "fused_batch_norm_grad_v2": _BACKWARD,
    "fused_batch_norm_grad_v3": (f"{_BACKWARD[0]} reserve_space_3", _BACKWARD[1]),
}


def install() -> None:
    """Accepts float16 scale, offset, mean and variance."""
    from tf_ipu_shim.tf_private.operations import gen_nn_ops

    for name, (arguments, results) in _OPS.items():
        change = functools.partial(_of_float16, arguments=arguments.split(), results=results.split())
        patches.replace(gen_nn_ops, name, change, why="scales of half precision, as on IPUs")


def _of_float16(stock: Callable[..., Any], arguments: list[str], results: list[str]) -> Callable[..., Any]:
    from tf_ipu_shim.tf_private.operations import math_ops
    from tf_ipu_shim.tf_private.tensors import dtypes

    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def normalise(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        if getattr(bound.get("scale"), "dtype", None) != dtypes.float16:
            return stock(*args, **kwargs)
        # Named, as an IPU does not have these casts: profiles leave them out, gradients included.
        full = {name: math_ops.cast(bound[name], dtypes.float32, mode.HALF_NORM_CAST) for name in arguments}
        result = stock(**{**bound, **full})
        return result._replace(
            **{name: math_ops.cast(getattr(result, name), dtypes.float16, mode.HALF_NORM_CAST) for name in results}
        )

    return normalise
