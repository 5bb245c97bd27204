"""`tensorflow.python.ipu.ops.control_flow_ops_grad`: the gradients of `control_flow_ops`, which come with the ops."""

from tf_ipu_shim.frontend.ops import control_flow_ops

__all__ = ["control_flow_ops"]
