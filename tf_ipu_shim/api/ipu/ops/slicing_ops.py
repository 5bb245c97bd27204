"""`tensorflow.python.ipu.ops.slicing_ops`: copies many slices at offsets known only at run time."""

from tf_ipu_shim.frontend.ops.slicing_ops import sequence_slice, sequence_slice_pack, sequence_slice_unpack

__all__ = [
    "sequence_slice",
    "sequence_slice_pack",
    "sequence_slice_unpack",
]
