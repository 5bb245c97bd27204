"""`gen_popfloat_ops`: casts to custom floats with Graphcore's arguments, computed by `popfloat_cast_to_gfloat`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.float8 import popfloat_cast_to_gfloat


def calc_gfloat_params(
    shape: Any,
    calc_type: Any,
    mantissa: int = 10,
    exponent: int = 5,
    bias: int = 15,
    en_denorm: bool = True,
    en_inf: bool = True,
    name: Any = None,
) -> Any:
    """See `popfloat_cast_to_gfloat.calc_gfloat_params`; `shape` is the shape of the result."""
    params = popfloat_cast_to_gfloat.calc_gfloat_params(
        mantissa, exponent, bias, en_denorm, en_inf, tf.as_dtype(calc_type)
    )
    return tf.reshape(params, shape, name=name or "CalcGfloatParams")


def cast_native_to_gfloat(
    input: Any,
    params: Any,
    out_type: Any,
    calc_type: Any,
    en_nanoo: bool = True,
    round_mode: str = "RN",
    sr_density: str = "Invalid",
    sr_bits: int = 24,
    sr_norm_offset: float = 0.0,
    sr_norm_scale: float = 1.0,
    sr_norm_min: float = -0.5,
    sr_norm_max: float = 0.5,
    sr_prob: float = 1.0,
    gfloat_format: str = "Invalid",
    name: Any = None,
) -> Any:
    """See `popfloat_cast_to_gfloat.cast_native_to_gfloat`."""
    with tf.name_scope(name or "CastNativeToGfloat"):
        return popfloat_cast_to_gfloat.cast_native_to_gfloat(
            input,
            params,
            en_nanoo,
            round_mode,
            sr_bits,
            sr_density,
            sr_norm_offset,
            sr_norm_scale,
            sr_norm_min,
            sr_norm_max,
            sr_prob,
            gfloat_format,
            calc_type,
            out_type,
        )


def cast_gfloat_to_native(
    input: Any, params: Any, out_type: Any, calc_type: Any, gfloat_format: str = "Invalid", name: Any = None
) -> Any:
    """See `popfloat_cast_to_gfloat.cast_gfloat_to_native`."""
    with tf.name_scope(name or "CastGfloatToNative"):
        return popfloat_cast_to_gfloat.cast_gfloat_to_native(input, params, gfloat_format, calc_type, out_type)
