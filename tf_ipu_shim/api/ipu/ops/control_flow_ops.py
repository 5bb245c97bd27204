"""`tensorflow.python.ipu.ops.control_flow_ops`: barriers that order ops without a data dependency."""

from tf_ipu_shim.frontend.ops.control_flow_ops import barrier

__all__ = [
    "barrier",
]
