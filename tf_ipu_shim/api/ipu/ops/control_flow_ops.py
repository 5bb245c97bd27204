"""`tensorflow.python.ipu.ops.control_flow_ops`: order between ops that no value orders."""

from tf_ipu_shim.frontend.ops.control_flow_ops import barrier

__all__ = [
    "barrier",
]
