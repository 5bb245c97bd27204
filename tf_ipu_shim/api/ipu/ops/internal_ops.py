"""`tensorflow.python.ipu.ops.internal_ops`: printing, FIFOs inside a program, compiler hints."""

from tf_ipu_shim.frontend.ops.internal_ops import (
    block_recompute,
    fifo,
    get_current_iteration_counter,
    print_tensor,
    recompute,
    remap,
    remap_deduce,
)

__all__ = [
    "block_recompute",
    "fifo",
    "get_current_iteration_counter",
    "print_tensor",
    "recompute",
    "remap",
    "remap_deduce",
]
