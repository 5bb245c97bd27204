"""`tensorflow.python.ipu.ops.f8_ops`: float8 tensors with one scale per tensor."""

from tf_ipu_shim.frontend.ops.float8.f8_ops import (
    Format,
    QuarterTensor,
    canonicalise_input,
    canonicalise_output,
    convert_from_f8,
    convert_to_f8,
    create_metadata,
    f8_conv_1d,
    f8_conv_2d,
    f8_conv_3d,
    f8_matmul,
)

__all__ = [
    "Format",
    "QuarterTensor",
    "canonicalise_input",
    "canonicalise_output",
    "convert_from_f8",
    "convert_to_f8",
    "create_metadata",
    "f8_conv_1d",
    "f8_conv_2d",
    "f8_conv_3d",
    "f8_matmul",
]
