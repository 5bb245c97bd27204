"""`tensorflow.python.ipu.ops.slicing_ops`: copies of many slices at once, at places known when they run."""

from tf_ipu_shim.frontend.ops.slicing_ops import sequence_slice, sequence_slice_pack, sequence_slice_unpack

__all__ = [
    "sequence_slice",
    "sequence_slice_pack",
    "sequence_slice_unpack",
]
