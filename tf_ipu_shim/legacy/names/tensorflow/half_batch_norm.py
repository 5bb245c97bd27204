"""Accepts a float16 scale in `tf.nn.fused_batch_norm`, as Graphcore's TensorFlow does.

The results are the same: the statistics are summed as float32 in both cases. Checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode

"""Name of the casts to float32 and back, which an IPU has not: profiles leave them out, gradients included."""


def install() -> None:
    """Accepts float16 scale, offset, mean and variance."""
    from tf_ipu_shim.tf_private.operations import gen_nn_ops, math_ops
    from tf_ipu_shim.tf_private.tensors import dtypes

    why = "scales of half precision, as on IPUs"
    patches.replace(gen_nn_ops, "fused_batch_norm_v3", lambda stock: _of_float16(stock, dtypes, math_ops), why=why)


def _of_float16(stock: Callable[..., Any], dtypes: Any, math_ops: Any) -> Callable[..., Any]:
    @functools.wraps(stock)
    def fused_batch_norm_v3(
        x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if getattr(scale, "dtype", None) != dtypes.float16:
            return stock(x, scale, offset, mean, variance, *args, **kwargs)
        full = [math_ops.cast(value, dtypes.float32, mode.HALF_NORM_CAST) for value in (scale, offset, mean, variance)]
        results = stock(x, *full, *args, **kwargs)
        return results._replace(
            batch_mean=math_ops.cast(results.batch_mean, dtypes.float16, mode.HALF_NORM_CAST),
            batch_variance=math_ops.cast(results.batch_variance, dtypes.float16, mode.HALF_NORM_CAST),
        )

    return fused_batch_norm_v3
