"""`gen_poputil_ops`: op wrappers with the arguments of Graphcore's, computed by the modules of `ipu.ops`.

An argument is an input of the op, then come attributes, then `name`. Names that are not here are refused by name.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_ipu_shim import ipu as _ipu  # loads the device
from tf_ipu_shim.ipu.ops import control_flow_ops, internal_ops

del _ipu


def ipu_barrier(inputs: Any, insert_barrier_for_gradients: bool = False, name: Any = None) -> Any:
    """See `control_flow_ops.barrier`."""
    return control_flow_ops.barrier(list(inputs), insert_barrier_for_gradients, name or "IpuBarrier")


def ipu_print_tensor(input: Any, tensor_name: str, name: Any = None) -> Any:
    """See `internal_ops.print_tensor`."""
    with tf.name_scope(name or "IpuPrintTensor"):
        return internal_ops.print_tensor(input, tensor_name)


def ipu_fifo(input: Any, depth: int, offload: bool, name: Any = None) -> Any:
    """See `internal_ops.fifo`."""
    return internal_ops.fifo(input, depth, offload, name or "IpuFifo")


def ipu_remap(input: Any, name: Any = None) -> Any:
    """See `internal_ops.remap`."""
    return internal_ops.remap(input, name or "IpuRemap")


def ipu_remap_deduce(input: Any, name: Any = None) -> Any:
    """See `internal_ops.remap_deduce`."""
    return internal_ops.remap_deduce(input, name or "IpuRemapDeduce")


def ipu_suggest_recompute(input: Any, name: Any = None) -> Any:
    """See `internal_ops.recompute`."""
    return internal_ops.recompute(input, name or "IpuSuggestRecompute")


def ipu_block_recompute(input: Any, name: Any = None) -> Any:
    """See `internal_ops.block_recompute`."""
    return internal_ops.block_recompute(input, name or "IpuBlockRecompute")
