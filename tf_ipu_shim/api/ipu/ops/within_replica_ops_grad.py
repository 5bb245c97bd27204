"""`tensorflow.python.ipu.ops.within_replica_ops_grad`: gradients of `within_replica_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops.collectives import within_replica_ops

__all__ = ["within_replica_ops"]
