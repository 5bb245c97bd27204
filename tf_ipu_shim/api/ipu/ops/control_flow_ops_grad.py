"""`tensorflow.python.ipu.ops.control_flow_ops_grad`: gradients of `control_flow_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops import control_flow_ops

__all__ = ["control_flow_ops"]
