"""`tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat`: casts to custom floating-point formats."""

from tf_ipu_shim.frontend.ops.float8.popfloat_cast_to_gfloat import (
    GenericFloat,
    calc_gfloat_params,
    cast_gfloat_to_native,
    cast_native_to_gfloat,
    cast_to_gfloat16_param_size,
    cast_to_gfloat32_param_size,
)

__all__ = [
    "GenericFloat",
    "calc_gfloat_params",
    "cast_gfloat_to_native",
    "cast_native_to_gfloat",
    "cast_to_gfloat16_param_size",
    "cast_to_gfloat32_param_size",
]
